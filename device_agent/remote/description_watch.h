// Keeps a measure-only board's devices as its builders describe them now: asks
// again whenever builders change.
//
// Thread-safe. The callback comes from the watch's own thread.
#ifndef REGATTA_DEVICE_AGENT_REMOTE_DESCRIPTION_WATCH_H_
#define REGATTA_DEVICE_AGENT_REMOTE_DESCRIPTION_WATCH_H_

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device_agent/loop/agent_setup.h"
#include "device_agent/measure/served_device.h"
#include "device_agent/remote/order_desk.h"
#include "proto/device_build.h"

namespace regatta {

class DescriptionWatch {
 public:
  struct Options {
    OrderDesk* desk = nullptr;  // they outlive the watch
    BuildWorkerInfo* builders = nullptr;
    v1::DescribeRequest host;
    std::vector<ServedDevice> devices;  // as they were described first
    // A device is built otherwise from now on.
    std::function<void(const std::string& device_id, const DeviceBuild&)>
        on_build;
  };

  explicit DescriptionWatch(Options options);
  ~DescriptionWatch();

  // "" until a builder names another target or class for a device than it had:
  // then why the agent has to begin anew.
  std::string WhyRestart() const;

 private:
  void Run();
  // False when the description could not be had now.
  bool Ask(ServedDevice& device);

  Options options_;
  mutable std::mutex mutex_;
  std::string why_restart_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_REMOTE_DESCRIPTION_WATCH_H_
