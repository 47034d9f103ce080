// Whoever answers a board's build requests: its own build worker
// (build_client.h), or a builder elsewhere (remote/remote_build_worker.h).
//
// Not thread-safe, except Abort: one for each build thread.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_BUILD_WORKER_H_
#define REGATTA_DEVICE_AGENT_MEASURE_BUILD_WORKER_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "regatta/v1/build.pb.h"

namespace regatta {

class BuildWorker {
 public:
  struct Reply {
    v1::BuildResponse response;
    UniqueFd file;        // the serialised module, where there is one
    std::string builder;  // as Environment.builder; "": this board
  };

  virtual ~BuildWorker() = default;

  // Whatever the candidate is to blame for is answered as a BuildFailure. An
  // error says nothing about it: this board, or every builder, failed.
  // Cancelled soon after `cancelled` (may be empty) says so, where the wait is
  // for somebody else.
  virtual absl::StatusOr<Reply> Call(
      v1::BuildRequest request, const std::function<bool()>& cancelled) = 0;
  // Whether builds take this board's processors.
  virtual bool on_board() const = 0;
  // From any thread: the call in progress fails soon.
  virtual void Abort() = 0;
};

// How it builds for a device. Unavailable with what it said.
absl::StatusOr<v1::Description> Describe(
    BuildWorker& worker, const v1::DescribeRequest& device,
    const std::function<bool()>& cancelled);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_BUILD_WORKER_H_
