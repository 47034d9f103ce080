// Builds of a measure-only board: by builders that its operator trusts.
#ifndef REGATTA_DEVICE_AGENT_REMOTE_REMOTE_BUILD_WORKER_H_
#define REGATTA_DEVICE_AGENT_REMOTE_REMOTE_BUILD_WORKER_H_

#include <atomic>
#include <functional>

#include "device_agent/measure/build_worker.h"
#include "device_agent/remote/order_desk.h"

namespace regatta {

class RemoteBuildWorker : public BuildWorker {
 public:
  // REQUIRES: the desk outlives it.
  explicit RemoteBuildWorker(OrderDesk* desk) : desk_(desk) {}

  absl::StatusOr<Reply> Call(v1::BuildRequest request,
                             const std::function<bool()>& cancelled) override;
  bool on_board() const override { return false; }
  void Abort() override { aborted_ = true; }

 private:
  OrderDesk* const desk_;
  std::atomic<bool> aborted_ = false;  // for good: its board is ending
};

// Which builder fits the request; the request itself is in it too.
v1::BuildOrder OrderOf(const v1::BuildRequest& request);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_REMOTE_REMOTE_BUILD_WORKER_H_
