// What candidates do to a board, and what each must come to: the kernels of
// planted/ with the outcome and detail of their trials.
#ifndef REGATTA_TESTS_DEVICE_AGENT_PLANTED_LIST_H_
#define REGATTA_TESTS_DEVICE_AGENT_PLANTED_LIST_H_

#include <string>
#include <vector>

#include "regatta/v1/trial.pb.h"

namespace regatta {

// All claim to compute this.
inline constexpr char kPlantedWorkload[] = "B[i] = A[i] * 2 where i=1000";
// The memory limit that a detail names, unless it is the agent's own.
inline constexpr int64_t kPlantedMemoryBytes = int64_t{256} << 20;

// With the best sandbox, and with rlimits alone.
struct Fault {
  std::string name;
  v1::Outcome outcome;
  std::string detail;  // part of it
  v1::Outcome poor_outcome;
  std::string poor_detail;
  // With rlimits alone nothing but another user protects others from it.
  bool needs_user = false;
  bool takes_path = false;  // read_file, write_file
};

// What needs_user costs where there is neither: for skips.
inline constexpr char kNeedsUser[] =
    "neither another user nor a filter: it would reach this test";

std::vector<Fault> PlantedFaults();

// The schedule that plants it. `path`: of those that take one.
std::string PlantedSchedule(const Fault& fault, const std::string& path);

}  // namespace regatta

#endif  // REGATTA_TESTS_DEVICE_AGENT_PLANTED_LIST_H_
