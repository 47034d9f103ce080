// The known-good kernels by which the tracker proves boards: one bound by
// arithmetic, one by memory, each with its default schedule, for every kind of
// board in the fleet that this server's compiler knows. Simulated boards have
// none: their times are a model's.
//
// Not thread-safe.
#ifndef REGATTA_SERVER_JOB_CANARIES_H_
#define REGATTA_SERVER_JOB_CANARIES_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "server/job/fleet_view.h"

namespace regatta {

class CanaryMaker {
 public:
  // InvalidArgument for a target that this compiler has no generator for.
  using CompilerVersion =
      std::function<absl::StatusOr<std::string>(const Target&)>;

  explicit CanaryMaker(CompilerVersion compiler_version)
      : compiler_version_(std::move(compiler_version)) {}

  // Of a class the first so many; its other boards go unproven.
  static constexpr size_t kMaxTargets = 16;

  // Those of all classes that have boards of a kind that is new since the last
  // call, and approved; a class's come together, one message each.
  std::vector<v1::Canaries> MakeNew(const FleetView& fleet);
  // The tracker was restarted and has none any more.
  void ForgetOffered() { offered_.clear(); }

 private:
  // Empty: this compiler cannot make any; said once in the daemon's messages.
  const std::vector<v1::Canary>& Of(const std::string& device_class,
                                    const std::string& target);

  static constexpr size_t kMaxMade = 1024;

  const CompilerVersion compiler_version_;
  // By class and target.
  std::map<std::pair<std::string, std::string>, std::vector<v1::Canary>> made_;
  std::set<std::pair<std::string, std::string>> offered_;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_JOB_CANARIES_H_
