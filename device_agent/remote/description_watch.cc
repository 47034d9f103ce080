#include "device_agent/remote/description_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace regatta {
namespace {

// Without any change: descriptions may have been missed while away.
constexpr absl::Duration kLongest = absl::Hours(1);
constexpr absl::Duration kRetry = absl::Seconds(5);

}  // namespace

DescriptionWatch::DescriptionWatch(Options options)
    : options_(std::move(options)), thread_([this] { Run(); }) {}

DescriptionWatch::~DescriptionWatch() {
  ending_ = true;
  thread_.join();
}

std::string DescriptionWatch::WhyRestart() const {
  std::lock_guard lock(mutex_);
  return why_restart_;
}

bool DescriptionWatch::Ask(ServedDevice& device) {
  v1::DescribeRequest request = options_.host;
  if (!device.on_host()) *request.mutable_device() = device.board;
  const absl::StatusOr<v1::Description> now =
      options_.builders->Describe(request);
  if (!now.ok()) {
    LOG(kWarning) << "device " << device.info.device_id()
                  << " keeps its description: " << now.status().message();
    return false;
  }
  if (now->target() != device.info.target()) {
    std::lock_guard lock(mutex_);
    why_restart_ =
        absl::StrCat("builders now call device ", device.info.device_id(), " ",
                     now->target(), ", before ", device.info.target());
    return true;
  }
  const DeviceBuild build = {now->compiler_version(), now->space(),
                             now->space_version()};
  if (build == BuildOf(device.info, DeviceBuild())) return true;
  LOG(kInfo) << "device " << device.info.device_id()
             << " is built for by compiler " << build.compiler_version;
  SetBuildOf(build, device.info);
  options_.on_build(device.info.device_id(), build);
  return true;
}

void DescriptionWatch::Run() {
  const auto ending = [this] { return ending_.load(); };
  int64_t seen = 0;
  bool all = true;
  while (!ending_) {
    seen = options_.desk->AwaitChange(seen, all ? kLongest : kRetry, ending);
    all = true;
    for (ServedDevice& device : options_.devices) {
      if (!ending_ && !Ask(device)) all = false;
    }
  }
}

}  // namespace regatta
