// Types that all kernels share, aligned memory, and hashing for reproducible draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#if defined(__GNUC__) || defined(__clang__)
#define SCB_PREFETCH(address) __builtin_prefetch(address)
#define SCB_INLINE inline __attribute__((always_inline))
#else
#define SCB_PREFETCH(address) ((void)0)
#define SCB_INLINE inline
#endif

namespace scb {

// Gradients, in C channels, and Hessian of a sample. A tree of one output has one channel; a tree that several outputs
// share has kChannels, to which the gradients of all outputs are added up.
template <std::size_t C>
struct Pair {
  float g[C], h;

  bool counts() const {
    bool found = h != 0;
    for (std::size_t c = 0; c < C; ++c) found |= g[c] != 0;
    return found;
  }
};

constexpr std::size_t kChannels = 5;  // odd: sums are added by twos

// Sum of gradients and Hessians. Sums are in double: the results do not depend on their order by more than 1e-16.
template <std::size_t C>
struct alignas(16) Sum {
  double g[C] = {}, h = 0;

  SCB_INLINE void add(const Pair<C>& p) {
    for (std::size_t c = 0; c < C; ++c) g[c] += static_cast<double>(p.g[c]);
    h += static_cast<double>(p.h);
  }
  SCB_INLINE Sum operator+(const Sum& o) const {
    Sum sum;
    for (std::size_t c = 0; c < C; ++c) sum.g[c] = g[c] + o.g[c];
    sum.h = h + o.h;
    return sum;
  }
  SCB_INLINE Sum operator-(const Sum& o) const {
    Sum sum;
    for (std::size_t c = 0; c < C; ++c) sum.g[c] = g[c] - o.g[c];
    sum.h = h - o.h;
    return sum;
  }
  bool counts() const {
    bool found = h != 0;
    for (std::size_t c = 0; c < C; ++c) found |= g[c] != 0;
    return found;
  }
};

// Memory on cache-line boundaries that is not initialised and never shrinks.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) { reserve(size); }
  T* reserve(std::size_t size) {
    if (size > size_) {
      data_.reset();  // before asking for more: both need not fit
      size_ = 0;
      data_.reset(static_cast<T*>(::operator new(size * sizeof(T), std::align_val_t{64})));
      size_ = size;
    }
    return data_.get();
  }
  T* data() const { return data_.get(); }
  T& operator[](std::size_t i) const { return data_.get()[i]; }
  std::size_t size() const { return size_; }

 private:
  struct Delete {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t{64}); }
  };
  std::unique_ptr<T, Delete> data_;
  std::size_t size_ = 0;
};

// splitmix64: https://prng.di.unimi.it/splitmix64.c, public domain.
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace scb
