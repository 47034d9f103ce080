#include "tests/compiler/space_support.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "compiler/module/half.h"
#include "compiler/ops/op.h"
#include "tests/support/loop_interpreter.h"

namespace regatta {
namespace {

// What rounding allows between two orders of summing `terms` numbers of at most
// about one, each sum held in f32 and the result in `type`.
double Tolerance(DType type, double terms, double expected) {
  if (!IsFloat(type)) return 0;
  const double unit = type == DType::kF32   ? 0x1p-24
                      : type == DType::kF16 ? 0x1p-11
                                            : 0x1p-8;
  return 2 * unit * (1 + std::abs(expected)) + 0x1p-24 * terms * 4;
}

}  // namespace

Workload WorkloadOf(const std::string& text) {
  absl::StatusOr<Workload> workload = ParseWorkload(text);
  CHECK(workload.ok()) << text << ": " << workload.status().ToString();
  return *std::move(workload);
}

Space SpaceOf(const std::string& workload, const std::string& target,
              int threads) {
  absl::StatusOr<Target> parsed = ParseTarget(target);
  CHECK(parsed.ok()) << target << ": " << parsed.status().ToString();
  absl::StatusOr<Space> space = Space::Create({.workload = WorkloadOf(workload),
                                               .target = *std::move(parsed),
                                               .threads = threads});
  CHECK(space.ok()) << workload << ": " << space.status().ToString();
  return *std::move(space);
}

std::vector<TensorValues> RandomInputs(const Workload& workload,
                                       uint64_t seed) {
  Random random(seed);
  std::vector<TensorValues> inputs;
  for (int id : workload.TensorsWithRole(TensorRole::kInput)) {
    const TensorDecl& tensor = workload.tensors[id];
    TensorValues values(tensor.Elements());
    for (double& value : values) {
      value = IsFloat(tensor.dtype)
                  ? RoundToDType(random.Unit() * 2 - 1, tensor.dtype)
                  : static_cast<double>(random.Below(17)) - 8;
    }
    inputs.push_back(std::move(values));
  }
  return inputs;
}

Oracle::Oracle(const Workload& workload, uint64_t seed)
    : workload_(workload),
      inputs_(RandomInputs(workload, seed)),
      expected_(Interpret(workload, inputs_)) {
  for (const Stage& stage : workload.stages) {
    double terms = 1;
    for (int index : stage.reduce_indices) {
      terms *= static_cast<double>(workload.indices[index].extent);
    }
    terms_ = std::max(terms_, terms);
  }
}

testing::AssertionResult Oracle::Agrees(const Space& space,
                                        const Schedule& schedule) const {
  return Agrees(space.Emit(schedule), space.Print(schedule));
}

testing::AssertionResult Oracle::Agrees(const loop::Program& program,
                                        const std::string& name) const {
  if (const absl::Status status = loop::Verify(program); !status.ok()) {
    return testing::AssertionFailure()
           << workload_.text << " " << name << ": " << status.ToString();
  }
  const LoopRun run = RunLoops(program, inputs_);
  if (!run.race.empty()) {
    return testing::AssertionFailure()
           << workload_.text << " " << name << ": " << run.race;
  }
  const std::vector<TensorValues>& outputs = run.outputs;
  const std::vector<int> ids = workload_.TensorsWithRole(TensorRole::kOutput);
  for (size_t i = 0; i < ids.size(); ++i) {
    const DType type = workload_.tensors[ids[i]].dtype;
    for (size_t e = 0; e < expected_[i].size(); ++e) {
      const double want = expected_[i][e], got = outputs[i][e];
      if (got == want ||
          std::abs(got - want) <= Tolerance(type, terms_, want)) {
        continue;
      }
      return testing::AssertionFailure()
             << workload_.text << " " << name << ": element " << e
             << " of output " << i << " is " << got << ", not " << want;
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace regatta
