// One workload, tuned in this process by the search strategy that jobs use:
// candidates are built, loaded and timed here, one after the other.
//
// Not thread-safe.
#ifndef REGATTA_TESTS_BENCH_TUNED_OPERATOR_H_
#define REGATTA_TESTS_BENCH_TUNED_OPERATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "compiler/compile.h"
#include "device_agent/probe/kernels.h"
#include "tests/bench/stream_probe.h"

namespace regatta::bench {

// Time that the calling thread spent on a processor: what else a busy machine
// does in between does not count.
const Clock& ThreadClock();

class TunedOperator {
 public:
  // Parses the workload, makes inputs, and the outputs of the reference.
  static absl::StatusOr<std::unique_ptr<TunedOperator>> Create(
      const std::string& workload, const Target& target, MachineHints hints);

  // The default, then `trials` candidates. Internal when a candidate does not
  // build, or when the best few or the default give wrong results.
  absl::Status Tune(int trials, uint64_t seed);

  // One call of the default and of the best schedule. REQUIRES: Tune.
  void RunDefault() { Run(default_); }
  void RunTuned() { Run(tuned_); }
  const std::string& tuned_schedule() const { return tuned_.schedule; }
  const std::string& default_schedule() const { return default_.schedule; }

  // All elements of inputs and outputs.
  std::vector<Stretch> Inputs() const { return Stretches(inputs_); }
  std::vector<Stretch> Outputs() const { return Stretches(outputs_); }

 private:
  using Entry = int (*)(void* const* buffers, void* workspace);
  struct Tensor {
    std::unique_ptr<ProbeMemory> memory;
    int64_t bytes = 0;  // of its elements
  };
  struct Candidate {
    Schedule point;
    std::string schedule;
    std::shared_ptr<void> library;  // loaded as long as someone holds it
    Entry entry = nullptr;
    int64_t workspace_bytes = 0;
    double seconds = 0;
  };

  TunedOperator(Workload workload, std::shared_ptr<const Space> space)
      : workload_(std::move(workload)), space_(std::move(space)) {}

  static std::vector<Stretch> Stretches(const std::vector<Tensor>& tensors);
  absl::Status MakeTensors(const Module& module);
  absl::Status MakeReference();
  absl::StatusOr<Candidate> Build(const Schedule& schedule, int number) const;
  absl::Status Load(const Module& module, Candidate& candidate) const;
  void Run(const Candidate& candidate);
  absl::Status Verify(const Candidate& candidate);
  // Times the candidate alone; slow ones are left early.
  double Screen(const Candidate& candidate, double incumbent);
  // The fastest of `finalists`, timed in turns.
  Candidate Final(std::vector<Candidate> finalists);

  const Workload workload_;
  const std::shared_ptr<const Space> space_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<std::string> expected_;  // outputs' bytes
  std::unique_ptr<ProbeMemory> workspace_;
  std::vector<void*> pointers_;
  Candidate default_, tuned_;
};

}  // namespace regatta::bench

#endif  // REGATTA_TESTS_BENCH_TUNED_OPERATOR_H_
