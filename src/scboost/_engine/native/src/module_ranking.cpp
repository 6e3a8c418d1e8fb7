// Python bindings of the losses of rankings; see ranking.h.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>

#include "ranking.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using In = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using InRows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Weight = std::optional<In>;
using OptionalOut = std::optional<Out>;

void require(bool condition) {
  if (!condition) throw std::invalid_argument("the arrays of a kernel differ in length");
}

template <class Function>
void call(const Function& function, const InRows& y, const In& score, const Weight& weight, const Out& loss,
          const OptionalOut& gradient, const OptionalOut& hessian) {
  const std::size_t n = score.shape(0);
  require(y.shape(0) == n && y.shape(1) == 2 && loss.shape(0) == n);
  require(!weight || weight->shape(0) == n);
  require(gradient.has_value() == hessian.has_value());
  require(!gradient || (gradient->shape(0) == n && hessian->shape(0) == n));
  const scb::Documents documents{y.data(), score.data(), weight ? weight->data() : nullptr, n};
  const scb::LossAndDerivatives out{loss.data(), gradient ? gradient->data() : nullptr, hessian ? hessian->data() : nullptr};
  nb::gil_scoped_release release;
  function(documents, out);
}

void bind(nb::module_& m, const char* name, void (*function)(const scb::Documents&, const scb::LossAndDerivatives&)) {
  m.def(
      name,
      [function](const InRows& y, const In& score, const Weight& weight, const Out& loss, const OptionalOut& gradient,
                 const OptionalOut& hessian) { call(function, y, score, weight, loss, gradient, hessian); },
      "y"_a.noconvert(), "score"_a.noconvert(), "weight"_a.none(), "loss"_a.noconvert(), "gradient"_a.noconvert().none(),
      "hessian"_a.noconvert().none());
}

}  // namespace

void bind_ranking(nb::module_& m) {
  m.def(
      "lambdarank",
      [](const InRows& y, const In& score, const Weight& weight, std::size_t truncation, bool normalized,
         const Out& loss, const OptionalOut& gradient, const OptionalOut& hessian) {
        call([=](const scb::Documents& documents, const scb::LossAndDerivatives& out) {
          scb::lambdarank(documents, truncation, normalized, out);
        }, y, score, weight, loss, gradient, hessian);
      },
      "y"_a.noconvert(), "score"_a.noconvert(), "weight"_a.none(), "truncation"_a, "normalized"_a,
      "loss"_a.noconvert(), "gradient"_a.noconvert().none(), "hessian"_a.noconvert().none());
  bind(m, "pairwise", scb::pairwise);
  bind(m, "xendcg", scb::xendcg);
}
