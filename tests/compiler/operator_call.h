// An operator's call with its inputs and what the interpreter makes of it, to
// be compared with loops written out.
#ifndef REGATTA_TESTS_COMPILER_OPERATOR_CALL_H_
#define REGATTA_TESTS_COMPILER_OPERATOR_CALL_H_

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "compiler/interp/interpreter.h"
#include "compiler/module/half.h"
#include "compiler/ops/op.h"
#include "gtest/gtest.h"
#include "tests/compiler/status_text.h"

namespace regatta {

// A call, its random inputs by name, and the interpreter's result.
class Call {
 public:
  explicit Call(const std::string& text) {
    const auto parsed = ParseWorkload(text);
    EXPECT_TRUE(parsed.ok()) << text << ": " << StatusText(parsed);
    if (!parsed.ok()) return;
    workload_ = *parsed;
    Random random(text.size());
    for (int id : workload_.TensorsWithRole(TensorRole::kInput)) {
      const TensorDecl& tensor = workload_.tensors[id];
      TensorValues values(tensor.Elements());
      for (double& value : values) {
        value = IsFloat(tensor.dtype)
                    ? RoundToDType(random.Unit() * 2 - 1, tensor.dtype)
                    : static_cast<double>(random.Below(17)) - 8;
      }
      inputs_.push_back(std::move(values));
    }
    result_ = Interpret(workload_, inputs_)[0];
  }

  const TensorValues& operator[](const std::string& name) const {
    const auto ids = workload_.TensorsWithRole(TensorRole::kInput);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (workload_.tensors[ids[i]].name == name) return inputs_[i];
    }
    ADD_FAILURE() << workload_.text << " has no input " << name;
    static const TensorValues none;
    return none;
  }
  const TensorDecl& Output() const { return workload_.tensors.back(); }

  // The result with other values for one input.
  TensorValues With(const std::string& name, const TensorValues& values) {
    const auto ids = workload_.TensorsWithRole(TensorRole::kInput);
    std::vector<TensorValues> inputs = inputs_;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (workload_.tensors[ids[i]].name == name) inputs[i] = values;
    }
    return Interpret(workload_, inputs)[0];
  }

  // Every element is `expected`, given its offset, rounded to its type; floats
  // may differ by what one rounding of an intermediate makes.
  void Expect(const std::function<double(int64_t)>& expected) const {
    const DType type = Output().dtype;
    const double unit = type == DType::kF16    ? 0x1p-10
                        : type == DType::kBF16 ? 0x1p-7
                        : IsFloat(type)        ? 1e-6
                                               : 0;
    for (size_t i = 0; i < result_.size(); ++i) {
      const double want = RoundToDType(expected(i), type);
      ASSERT_NEAR(result_[i], want, unit * std::max(1.0, std::fabs(want)))
          << workload_.text << " at " << i;
    }
  }
  size_t size() const { return result_.size(); }

 private:
  Workload workload_;
  std::vector<TensorValues> inputs_;
  TensorValues result_;
};

// The activation functions that operators have.
inline double Act(const std::string& name, double x) {
  if (name == "relu") return x > 0 ? x : 0;
  if (name == "gelu") return x * 0.5 * std::erfc(-x / std::sqrt(2));
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "tanh") return std::tanh(x);
  return x;
}

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_OPERATOR_CALL_H_
