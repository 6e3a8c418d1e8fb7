// NumPy arrays that own the memory of a vector.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace scb {

template <class T>
nanobind::object array(std::vector<T>&& values) {
  auto* owned = new std::vector<T>(std::move(values));
  nanobind::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nanobind::cast(nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(owned->data(), {owned->size()}, owner));
}

// Leaf numbers in the smallest type that holds them.
inline nanobind::object compact(const std::int32_t* leaf, std::size_t n, std::size_t n_leaves) {
  if (n_leaves <= 256) return array(std::vector<std::uint8_t>(leaf, leaf + n));
  if (n_leaves <= 65536) return array(std::vector<std::uint16_t>(leaf, leaf + n));
  return array(std::vector<std::int32_t>(leaf, leaf + n));
}

}  // namespace scb
