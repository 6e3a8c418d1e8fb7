// Losses of rankings: the documents of a query are compared with each other.
#pragma once

#include <cstddef>

namespace scb {

// Documents in any order. `weight` may be null.
struct Documents {
  const double* y;  // relevance and query of each, of shape (n, 2)
  const double* score;
  const double* weight;
  std::size_t n;
};

// What is to be computed for each document, per unit of its weight; gradient and Hessian are null if only losses are
// asked for.
struct LossAndDerivatives {
  double *loss, *gradient, *hessian;
};

// LambdaRank with pairs of which one document is among the first `truncation`; the loss is one minus NDCG.
void lambdarank(const Documents& documents, std::size_t truncation, bool normalized, const LossAndDerivatives& out);
// Logistic loss of pairs of documents, divided by the number of documents of the query.
void pairwise(const Documents& documents, const LossAndDerivatives& out);
// Cross-entropy of the softmax of the scores and the gains, times the number of documents of the query.
void xendcg(const Documents& documents, const LossAndDerivatives& out);

}  // namespace scb
