#include "compiler/expr/affine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace regatta {
namespace {

int64_t Add(int64_t a, int64_t b) {
  int64_t sum;
  CHECK(!__builtin_add_overflow(a, b, &sum)) << a << " + " << b;
  return sum;
}

int64_t Mul(int64_t a, int64_t b) {
  int64_t product;
  CHECK(!__builtin_mul_overflow(a, b, &product)) << a << " * " << b;
  return product;
}

}  // namespace

Affine Affine::Var(int var, int64_t coeff) {
  Affine form;
  if (coeff != 0) form.terms_.push_back({var, coeff});
  return form;
}

int64_t Affine::Coeff(int var) const {
  const auto it =
      std::lower_bound(terms_.begin(), terms_.end(), var,
                       [](const Term& term, int v) { return term.var < v; });
  return it != terms_.end() && it->var == var ? it->coeff : 0;
}

Affine Affine::operator+(const Affine& other) const {
  Affine sum(Add(constant_, other.constant_));
  sum.terms_.reserve(terms_.size() + other.terms_.size());
  auto a = terms_.begin();
  auto b = other.terms_.begin();
  while (a != terms_.end() || b != other.terms_.end()) {
    if (b == other.terms_.end() || (a != terms_.end() && a->var < b->var)) {
      sum.terms_.push_back(*a++);
    } else if (a == terms_.end() || b->var < a->var) {
      sum.terms_.push_back(*b++);
    } else {
      const int64_t coeff = Add(a->coeff, b->coeff);
      if (coeff != 0) sum.terms_.push_back({a->var, coeff});
      ++a;
      ++b;
    }
  }
  return sum;
}

Affine Affine::operator-(const Affine& other) const {
  return *this + other * -1;
}

Affine Affine::operator*(int64_t factor) const {
  if (factor == 0) return Affine();
  Affine product(Mul(constant_, factor));
  product.terms_ = terms_;
  for (Term& term : product.terms_) term.coeff = Mul(term.coeff, factor);
  return product;
}

Affine Affine::Substitute(int var, const Affine& value) const {
  const int64_t coeff = Coeff(var);
  if (coeff == 0) return *this;
  return *this + Var(var, Mul(coeff, -1)) + value * coeff;
}

int64_t Affine::Min(const std::function<int64_t(int)>& extent) const {
  int64_t least = constant_;
  for (const Term& term : terms_) {
    if (term.coeff < 0) {
      least = Add(least, Mul(term.coeff, extent(term.var) - 1));
    }
  }
  return least;
}

int64_t Affine::Max(const std::function<int64_t(int)>& extent) const {
  int64_t greatest = constant_;
  for (const Term& term : terms_) {
    if (term.coeff > 0) {
      greatest = Add(greatest, Mul(term.coeff, extent(term.var) - 1));
    }
  }
  return greatest;
}

int64_t Affine::Evaluate(const std::function<int64_t(int)>& value) const {
  int64_t result = constant_;
  for (const Term& term : terms_) {
    result = Add(result, Mul(term.coeff, value(term.var)));
  }
  return result;
}

std::string Affine::ToString(
    const std::function<std::string(int)>& name) const {
  std::string text;
  for (const Term& term : terms_) {
    if (term.coeff < 0) {
      text += '-';
    } else if (!text.empty()) {
      text += '+';
    }
    if (term.coeff != 1 && term.coeff != -1) {
      // As unsigned, so that the least int64 prints right too.
      const uint64_t magnitude = term.coeff < 0
                                     ? -static_cast<uint64_t>(term.coeff)
                                     : static_cast<uint64_t>(term.coeff);
      absl::StrAppend(&text, magnitude, "*");
    }
    text += name(term.var);
  }
  if (text.empty()) return absl::StrCat(constant_);
  if (constant_ > 0) text += '+';
  if (constant_ != 0) absl::StrAppend(&text, constant_);
  return text;
}

}  // namespace regatta
