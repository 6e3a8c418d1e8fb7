#include "histogram.h"

namespace scb {
namespace {

#if defined(__GNUC__) || defined(__clang__)
typedef double Two __attribute__((vector_size(16), may_alias));
SCB_INLINE Two two(Pair p) { return Two{static_cast<double>(p.g), static_cast<double>(p.h)}; }
SCB_INLINE void accumulate(Sum* s, Two p) { *reinterpret_cast<Two*>(s) += p; }
#else
typedef Sum Two;
SCB_INLINE Two two(Pair p) { return {p.g, p.h}; }
SCB_INLINE void accumulate(Sum* s, Two p) { *s = *s + p; }
#endif

constexpr std::size_t kAhead = 24;  // samples that are prefetched ahead

// Eight members of a byte each, whose sums are 256 entries apart: all addresses but the code are constants.
SCB_INLINE void add_full(std::uint64_t word, Two p, Sum* histogram) {
  accumulate(histogram + (word & 255), p);
  accumulate(histogram + 256 + (word >> 8 & 255), p);
  accumulate(histogram + 512 + (word >> 16 & 255), p);
  accumulate(histogram + 768 + (word >> 24 & 255), p);
  accumulate(histogram + 1024 + (word >> 32 & 255), p);
  accumulate(histogram + 1280 + (word >> 40 & 255), p);
  accumulate(histogram + 1536 + (word >> 48 & 255), p);
  accumulate(histogram + 1792 + (word >> 56), p);
}

template <std::uint32_t kCount>
SCB_INLINE void add_some(std::uint64_t word, Two p, const Slots& slots, std::uint64_t mask, Sum* histogram) {
  for (std::uint32_t k = 0; k < kCount; ++k) accumulate(histogram + slots.offset[k] + (word >> slots.shift[k] & mask), p);
}

template <class Add>
SCB_INLINE void for_samples(const std::uint64_t* words, const std::uint32_t* rows, const Pair* pairs, std::size_t count,
                            const Add& add) {
  const std::size_t near = count > kAhead ? count - kAhead : 0;
  std::size_t i = 0;
  for (; i < near; ++i) {
    SCB_PREFETCH(words + rows[i + kAhead]);
    add(words[rows[i]], two(pairs[i]));
  }
  for (; i < count; ++i) add(words[rows[i]], two(pairs[i]));
}

template <std::uint32_t kCount>
void add_count(const std::uint64_t* words, const std::uint32_t* rows, const Pair* pairs, std::size_t count,
               const Slots& slots, Sum* histogram) {
  const std::uint64_t mask = (1ull << slots.bits) - 1;
  for_samples(words, rows, pairs, count,
              [&](std::uint64_t word, Two p) { add_some<kCount>(word, p, slots, mask, histogram); });
}

}  // namespace

void add_samples(const std::uint64_t* words, const std::uint32_t* rows, const Pair* pairs, std::size_t count,
                 const Slots& slots, Sum* histogram) {
  if (slots.full) {
    for_samples(words, rows, pairs, count, [&](std::uint64_t word, Two p) { add_full(word, p, histogram); });
    return;
  }
  switch (slots.count) {
    case 1: return add_count<1>(words, rows, pairs, count, slots, histogram);
    case 2: return add_count<2>(words, rows, pairs, count, slots, histogram);
    case 3: return add_count<3>(words, rows, pairs, count, slots, histogram);
    case 4: return add_count<4>(words, rows, pairs, count, slots, histogram);
    case 5: return add_count<5>(words, rows, pairs, count, slots, histogram);
    case 6: return add_count<6>(words, rows, pairs, count, slots, histogram);
    case 7: return add_count<7>(words, rows, pairs, count, slots, histogram);
    case 8: return add_count<8>(words, rows, pairs, count, slots, histogram);
    default: return;
  }
}

void subtract_samples(const std::uint64_t* words, const Pair* pairs, std::size_t count, const Slots& slots,
                      Sum* histogram) {
  const std::uint64_t mask = (1ull << slots.bits) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const Two p = two({-pairs[i].g, -pairs[i].h});
    for (std::uint32_t k = 0; k < slots.count; ++k)
      accumulate(histogram + slots.offset[k] + (words[i] >> slots.shift[k] & mask), p);
  }
}

}  // namespace scb
