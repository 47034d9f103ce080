// Random schedules of every operator, at ShapesOf(), against the interpreter:
// draws them, so that whatever runs modules only has to run them.
#ifndef REGATTA_TESTS_COMPILER_SCHEDULE_SWEEP_H_
#define REGATTA_TESTS_COMPILER_SCHEDULE_SWEEP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "compiler/compile.h"
#include "compiler/interp/interpreter.h"
#include "compiler/ops/op.h"
#include "compiler/space/space.h"
#include "tests/compiler/device_cases.h"

namespace regatta {

// `full` at REGATTA_TEST_SCALE=100 and above, its share below, at least 1.
int SweepSize(int full);

class ScheduleSweep {
 public:
  // One workload with what it should compute.
  struct Task {
    Workload workload;
    std::vector<TensorValues> inputs, expected;
  };
  struct Draw {
    const Task* task = nullptr;
    const Space* space = nullptr;
    std::string schedule;
    std::string What() const { return task->workload.text + " " + schedule; }
  };

  // `full`: random schedules that the operator is to have at full scale.
  ScheduleSweep(const Op& op, int full, uint64_t seed);

  // The next schedule for `target`: the default of every shape where there are
  // enough turns for that, then random ones of all shapes in turn, none twice
  // while new ones are found. Absent when enough have run, or too few can.
  std::optional<Draw> Next(const Target& target);
  // What became of the last one: "registers" and its kind refuse when built.
  void Ran();
  void Refused() { ++refused_; }

  // Prints a line; fails the test where fewer ran than wanted.
  void Report(const std::string& where) const;

 private:
  const Space& SpaceOf(size_t task, const Target& target);

  const std::string op_;
  const int full_, wanted_;
  Random random_;
  std::vector<Task> tasks_;
  std::map<std::pair<size_t, std::string>, Space> spaces_;
  std::set<std::pair<size_t, std::string>> seen_;
  size_t defaults_left_ = 0;
  bool last_was_default_ = false, last_was_new_ = false;
  int turn_ = 0, defaults_ = 0, ran_ = 0, distinct_ = 0, refused_ = 0;
};

// Builds and runs the sweep of one operator on one target.
void ExpectRightSchedules(const Op& op, const Target& target, int full,
                          uint64_t seed, const std::string& where,
                          const DeviceRunner& run);

// Random schedules of `workloads` that say `choice` ("b_from=image"), of the
// space of `target`, built for `built_for`: the same target, or one that lacks
// something and whose code has to make up for it.
void ExpectRightSchedulesWith(const std::string& choice,
                              const std::vector<std::string>& workloads,
                              const Target& target, const Target& built_for,
                              int schedules, const DeviceRunner& run);

// Contractions that images, and sums in f16, are made for, with tails.
const std::vector<std::string>& ImageWorkloads();
const std::vector<std::string>& HalfWorkloads();

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_SCHEDULE_SWEEP_H_
