// Sums of gradients and Hessians by code.
#pragma once

#include <cstdint>

#include "bins.h"
#include "common.h"

namespace scb {

// Members of a group whose sums are wanted: where their codes are in the word, and their sums in the histogram.
struct Slots {
  std::uint32_t count = 0, bits = 8;
  bool full = false;  // eight members, 256 entries apart
  std::uint32_t shift[8], offset[8], feature[8];
};

// Adds samples to a histogram, or takes them from it.
template <std::size_t C>
void add_samples(const std::uint64_t* words, const std::uint32_t* rows, const Pair<C>* pairs, std::size_t count,
                 const Slots& slots, Sum<C>* histogram);
template <std::size_t C>
void subtract_samples(const std::uint64_t* words, const Pair<C>* pairs, std::size_t count, const Slots& slots,
                      Sum<C>* histogram);

}  // namespace scb
