#include "compiler/interp/interpreter.h"

#include "base/check.h"
#include "compiler/interp/scalar.h"

namespace regatta {
namespace {

// Every tensor whole.
class DenseSource : public ElementSource {
 public:
  explicit DenseSource(size_t tensors) : values_(tensors) {}
  double Read(int tensor, int64_t offset) override {
    return (*values_[tensor])[offset];
  }
  void Set(int tensor, const TensorValues* values) { values_[tensor] = values; }

 private:
  std::vector<const TensorValues*> values_;
};

}  // namespace

std::vector<TensorValues> Interpret(const Workload& workload,
                                    absl::Span<const TensorValues> inputs) {
  DenseSource source(workload.tensors.size());
  const std::vector<int> input_ids =
      workload.TensorsWithRole(TensorRole::kInput);
  CHECK(inputs.size() == input_ids.size())
      << inputs.size() << " inputs of " << input_ids.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorDecl& tensor = workload.tensors[input_ids[i]];
    CHECK(static_cast<int64_t>(inputs[i].size()) == tensor.Elements())
        << tensor.name << " has " << tensor.Elements() << " elements, not "
        << inputs[i].size();
    source.Set(input_ids[i], &inputs[i]);
  }
  std::vector<TensorValues> assigned(workload.tensors.size());
  std::vector<int64_t> index_values(workload.indices.size(), 0);
  for (const Stage& stage : workload.stages) {
    TensorValues& values = assigned[stage.tensor];
    values.reserve(workload.tensors[stage.tensor].Elements());
    for (int id : stage.indices) index_values[id] = 0;
    do {
      values.push_back(EvaluateElement(workload, stage, index_values, source));
    } while (NextPoint(workload, stage.indices, index_values));
    source.Set(stage.tensor, &values);
  }
  std::vector<TensorValues> outputs;
  for (int id : workload.TensorsWithRole(TensorRole::kOutput)) {
    outputs.push_back(std::move(assigned[id]));
  }
  return outputs;
}

}  // namespace regatta
