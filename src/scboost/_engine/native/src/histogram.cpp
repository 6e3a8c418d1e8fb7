#include "histogram.h"

namespace scb {
namespace {

#if defined(__GNUC__) || defined(__clang__)
// Gradients and Hessian of a sample by twos, as they are added.
template <std::size_t C>
struct Twos {
  typedef double Two __attribute__((vector_size(16), may_alias));
  static constexpr std::size_t kCount = (C + 1) / 2;
  Two part[kCount];

  SCB_INLINE explicit Twos(const Pair<C>& p) {
    for (std::size_t i = 0; i < kCount; ++i)
      part[i] = Two{static_cast<double>(p.g[2 * i]), static_cast<double>(2 * i + 1 < C ? p.g[2 * i + 1] : p.h)};
  }
  SCB_INLINE void add_to(Sum<C>* s) const {
    Two* sums = reinterpret_cast<Two*>(s);
    for (std::size_t i = 0; i < kCount; ++i) sums[i] += part[i];
  }
};
#else
template <std::size_t C>
struct Twos {
  Pair<C> pair;

  explicit Twos(const Pair<C>& p) : pair(p) {}
  void add_to(Sum<C>* s) const { s->add(pair); }
};
#endif

constexpr std::size_t kAhead = 24;  // samples that are prefetched ahead

// Eight members of a byte each, whose sums are 256 entries apart: all addresses but the code are constants.
template <std::size_t C>
SCB_INLINE void add_full(std::uint64_t word, const Twos<C>& p, Sum<C>* histogram) {
  p.add_to(histogram + (word & 255));
  p.add_to(histogram + 256 + (word >> 8 & 255));
  p.add_to(histogram + 512 + (word >> 16 & 255));
  p.add_to(histogram + 768 + (word >> 24 & 255));
  p.add_to(histogram + 1024 + (word >> 32 & 255));
  p.add_to(histogram + 1280 + (word >> 40 & 255));
  p.add_to(histogram + 1536 + (word >> 48 & 255));
  p.add_to(histogram + 1792 + (word >> 56));
}

template <std::uint32_t kCount, std::size_t C>
SCB_INLINE void add_some(std::uint64_t word, const Twos<C>& p, const Slots& slots, std::uint64_t mask,
                         Sum<C>* histogram) {
  for (std::uint32_t k = 0; k < kCount; ++k) p.add_to(histogram + slots.offset[k] + (word >> slots.shift[k] & mask));
}

template <std::size_t C, class Add>
SCB_INLINE void for_samples(const std::uint64_t* words, const std::uint32_t* rows, const Pair<C>* pairs, std::size_t count,
                            const Add& add) {
  const std::size_t near = count > kAhead ? count - kAhead : 0;
  std::size_t i = 0;
  for (; i < near; ++i) {
    SCB_PREFETCH(words + rows[i + kAhead]);
    add(words[rows[i]], Twos<C>(pairs[i]));
  }
  for (; i < count; ++i) add(words[rows[i]], Twos<C>(pairs[i]));
}

template <std::uint32_t kCount, std::size_t C>
void add_count(const std::uint64_t* words, const std::uint32_t* rows, const Pair<C>* pairs, std::size_t count,
               const Slots& slots, Sum<C>* histogram) {
  const std::uint64_t mask = (1ull << slots.bits) - 1;
  for_samples(words, rows, pairs, count,
              [&](std::uint64_t word, const Twos<C>& p) { add_some<kCount>(word, p, slots, mask, histogram); });
}

}  // namespace

template <std::size_t C>
void add_samples(const std::uint64_t* words, const std::uint32_t* rows, const Pair<C>* pairs, std::size_t count,
                 const Slots& slots, Sum<C>* histogram) {
  if (slots.full) {
    for_samples(words, rows, pairs, count, [&](std::uint64_t word, const Twos<C>& p) { add_full(word, p, histogram); });
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

template <std::size_t C>
void subtract_samples(const std::uint64_t* words, const Pair<C>* pairs, std::size_t count, const Slots& slots,
                      Sum<C>* histogram) {
  const std::uint64_t mask = (1ull << slots.bits) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    Pair<C> negative;
    for (std::size_t c = 0; c < C; ++c) negative.g[c] = -pairs[i].g[c];
    negative.h = -pairs[i].h;
    const Twos<C> p(negative);
    for (std::uint32_t k = 0; k < slots.count; ++k)
      p.add_to(histogram + slots.offset[k] + (words[i] >> slots.shift[k] & mask));
  }
}

template void add_samples(const std::uint64_t*, const std::uint32_t*, const Pair<1>*, std::size_t, const Slots&, Sum<1>*);
template void subtract_samples(const std::uint64_t*, const Pair<1>*, std::size_t, const Slots&, Sum<1>*);
template void add_samples(const std::uint64_t*, const std::uint32_t*, const Pair<kChannels>*, std::size_t, const Slots&, Sum<kChannels>*);
template void subtract_samples(const std::uint64_t*, const Pair<kChannels>*, std::size_t, const Slots&, Sum<kChannels>*);

}  // namespace scb
