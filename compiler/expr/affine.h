// A linear form over integer variables: constant + sum of coefficient * var.
// Subscripts, buffer offsets and guards are all of this form.
//
// Value type. Terms are kept sorted by variable, without zero coefficients, so
// that equal forms compare equal. Arithmetic is checked: overflow of int64 is a
// CHECK, since the workload verifier bounds every extent and coefficient first.
#ifndef REGATTA_COMPILER_EXPR_AFFINE_H_
#define REGATTA_COMPILER_EXPR_AFFINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace regatta {

class Affine {
 public:
  struct Term {
    int var;        // id of an index (expressions) or a loop (lowered code)
    int64_t coeff;  // never 0
    friend auto operator<=>(const Term&, const Term&) = default;
  };

  Affine() = default;
  explicit Affine(int64_t constant) : constant_(constant) {}
  static Affine Var(int var, int64_t coeff = 1);

  int64_t constant() const { return constant_; }
  const std::vector<Term>& terms() const { return terms_; }
  // 0 when `var` does not occur.
  int64_t Coeff(int var) const;
  bool IsConstant() const { return terms_.empty(); }

  Affine operator+(const Affine& other) const;
  Affine operator-(const Affine& other) const;
  Affine operator*(int64_t factor) const;
  Affine operator+(int64_t c) const { return *this + Affine(c); }

  // This form with `var` replaced by `value`.
  Affine Substitute(int var, const Affine& value) const;
  // Least and greatest value when each variable v runs over [0, extent(v)).
  int64_t Min(const std::function<int64_t(int)>& extent) const;
  int64_t Max(const std::function<int64_t(int)>& extent) const;
  int64_t Evaluate(const std::function<int64_t(int)>& value) const;
  // "2*i+r-1" with the names that `name` gives; "0" for the empty form.
  std::string ToString(const std::function<std::string(int)>& name) const;

  friend auto operator<=>(const Affine&, const Affine&) = default;

 private:
  int64_t constant_ = 0;
  std::vector<Term> terms_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_EXPR_AFFINE_H_
