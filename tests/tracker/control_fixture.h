// A tracker's core with an operator.
#ifndef REGATTA_TESTS_TRACKER_CONTROL_FIXTURE_H_
#define REGATTA_TESTS_TRACKER_CONTROL_FIXTURE_H_

#include <algorithm>
#include <string>
#include <vector>

#include "tests/tracker/core_fixture.h"

namespace regatta {

class ControlTest : public CoreTest {
 protected:
  static v1::ControlDevicesRequest Order(v1::DeviceCommand command,
                                         const std::vector<std::string>& ids,
                                         const std::string& reason = "",
                                         absl::Duration length = {}) {
    v1::ControlDevicesRequest request;
    for (const auto& id : ids) request.mutable_devices()->add_device_ids(id);
    request.set_command(command);
    request.set_reason(reason);
    request.set_by("ann");
    request.set_for_ms(absl::ToInt64Milliseconds(length));
    return request;
  }
  absl::Status Control(const v1::ControlDevicesRequest& request) {
    const auto response = core_->ControlDevices(request);
    Drain();
    return response.status();
  }
  absl::Status Control(v1::DeviceCommand command, const std::string& id,
                       const std::string& reason = "",
                       absl::Duration length = {}) {
    return Control(Order(command, {id}, reason, length));
  }
  v1::DeviceStanding Standing(const std::string& id) {
    return Status(id).standing();
  }
  std::vector<std::string> Drained(SessionId session) {
    std::vector<std::string> found;
    for (const auto& m : agents_[session].messages) {
      for (const auto& id : m.drain().device_ids()) found.push_back(id);
    }
    return found;
  }
  void GiveBack(SessionId session, const v1::Assignment& assignment) {
    v1::AgentMessage message;
    v1::Release* release = message.mutable_release();
    release->set_assignment_id(assignment.assignment_id());
    release->set_lease_epoch(assignment.lease_epoch());
    Say(session, message);
  }
  std::vector<std::string> History(const std::string& id) {
    v1::DeviceHistoryRequest request;
    request.mutable_devices()->add_device_ids(id);
    const auto response = core_->DeviceHistory(request);
    EXPECT_TRUE(response.ok()) << response.status();
    std::vector<std::string> what;
    for (const auto& event : response->events()) {
      what.push_back(absl::StrCat(event.what(), " by ", event.by()));
    }
    return what;
  }
  // Online, held from silence.
  void WaitBeating(SessionId session, absl::Duration d,
                   const std::vector<std::string>& held = {}) {
    for (absl::Duration left = d; left > absl::ZeroDuration();
         left -= absl::Seconds(5)) {
      Wait(std::min(left, absl::Seconds(5)));
      Beat(session, held);
    }
  }
};

}  // namespace regatta

#endif  // REGATTA_TESTS_TRACKER_CONTROL_FIXTURE_H_
