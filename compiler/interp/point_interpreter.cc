#include "base/check.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/scalar.h"

namespace regatta {

// Reads inputs from the caller's memory and everything else through the
// interpreter itself.
class PointInterpreter::Source : public ElementSource {
 public:
  explicit Source(PointInterpreter& interpreter) : interpreter_(interpreter) {}
  double Read(int tensor, int64_t offset) override {
    return interpreter_.Evaluate(tensor, offset);
  }

 private:
  PointInterpreter& interpreter_;
};

PointInterpreter::PointInterpreter(const Workload& workload,
                                   absl::Span<const TensorValues> inputs)
    : workload_(workload),
      input_values_(workload.tensors.size(), nullptr),
      stages_(workload.tensors.size(), nullptr),
      memo_(workload.tensors.size()) {
  const std::vector<int> ids = workload.TensorsWithRole(TensorRole::kInput);
  CHECK(ids.size() == inputs.size())
      << inputs.size() << " inputs of " << ids.size();
  for (size_t i = 0; i < ids.size(); ++i) input_values_[ids[i]] = &inputs[i];
  for (const Stage& stage : workload.stages) stages_[stage.tensor] = &stage;
}

double PointInterpreter::Evaluate(int tensor, int64_t offset) {
  if (input_values_[tensor] != nullptr) return (*input_values_[tensor])[offset];
  const auto it = memo_[tensor].find(offset);
  if (it != memo_[tensor].end()) return it->second;
  const Stage& stage = *stages_[tensor];
  std::vector<int64_t> index_values(workload_.indices.size(), 0);
  SetCoordinates(workload_, stage, offset, index_values);
  Source source(*this);
  const double value = EvaluateElement(workload_, stage, index_values, source);
  memo_[tensor].emplace(offset, value);
  return value;
}

}  // namespace regatta
