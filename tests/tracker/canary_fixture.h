// A tracker core with a server that offers canaries, and boards that pass them
// or do not.
#ifndef REGATTA_TESTS_TRACKER_CANARY_FIXTURE_H_
#define REGATTA_TESTS_TRACKER_CANARY_FIXTURE_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/tracker/core_fixture.h"

namespace regatta {

class CanaryTest : public CoreTest {
 protected:
  static v1::Canary MakeCanary(const std::string& name,
                               const std::string& target = "cpu x86_64") {
    v1::Canary canary;
    canary.set_name(name);
    v1::TrialSpec& trial = *canary.mutable_trial();
    trial.set_workload("workload of " + name);
    trial.set_device_class(kClass);
    trial.set_target(target);
    trial.set_compiler_version(kCompiler);
    trial.mutable_schedule()->set_space("cpu");
    trial.mutable_schedule()->set_space_version(1);
    trial.mutable_schedule()->set_text("default");
    return canary;
  }
  void Offer(StreamId server, const std::vector<v1::Canary>& canaries) {
    v1::DispatchRequest request;
    for (const auto& canary : canaries) {
      *request.mutable_canaries()->add_canaries() = canary;
    }
    Ask(server, request);
  }
  // A server that offers two canaries.
  StreamId AttachWithCanaries() {
    const StreamId server = Attach();
    Offer(server, {MakeCanary("compute"), MakeCanary("bandwidth")});
    return server;
  }
  static v1::SpooledResult Timed(const v1::Assignment& assignment, int index,
                                 int64_t ns) {
    v1::SpooledResult spooled =
        MakeResult(assignment, index, index + 1 == assignment.trials_size());
    v1::Block& block = *spooled.mutable_result()->add_blocks();
    block.set_calls(10);
    block.set_elapsed_ns(10 * ns);
    return spooled;
  }
  // Each of the round's kernels takes `ns`.
  void Pass(SessionId board, const v1::Assignment& round, int64_t ns = 1000) {
    for (int i = 0; i < round.trials_size(); ++i) {
      SendResults(board, {Timed(round, i, ns)});
    }
  }
  void Fail(SessionId board, const v1::Assignment& round,
            v1::Outcome outcome = v1::OUTCOME_WRONG_RESULT) {
    for (int i = 0; i < round.trials_size(); ++i) {
      SendResults(
          board, {MakeResult(round, i, i + 1 == round.trials_size(), outcome)});
    }
  }
  static bool IsCanary(const v1::Assignment& assignment) {
    return assignment.assignment_id().starts_with("~canary/");
  }
  // As Pass, with so many processors busy meanwhile, the canary's own included.
  void PassBeside(SessionId board, const v1::Assignment& round, int64_t ns,
                  double busy) {
    for (int i = 0; i < round.trials_size(); ++i) {
      v1::SpooledResult result = Timed(round, i, ns);
      v1::SensorReading& reading =
          *result.mutable_result()->mutable_environment()->add_sensors();
      reading.set_name("busy_processors");
      reading.set_after(busy);
      SendResults(board, {std::move(result)});
    }
  }
  // Board "1" with a median of 1000 ns, to be proven once more.
  SessionId ProvenBoard() {
    const SessionId board = ConnectBoard("1");
    for (int i = 0; i < 3; ++i) {
      Pass(board, OneAssigned(board), 1000);
      Control(v1::DEVICE_COMMAND_MAINTENANCE, "d1");
      Control(v1::DEVICE_COMMAND_RESUME, "d1");
    }
    return board;
  }
  // The next round, after the wait between two of them.
  v1::Assignment NextRound(SessionId board) {
    Wait(options_.canary_retry + options_.tick);
    const v1::Assignment round = OneAssigned(board);
    EXPECT_TRUE(IsCanary(round)) << round.assignment_id();
    return round;
  }
  std::vector<std::string> Events(const std::string& id) {
    std::vector<std::string> what;
    v1::DeviceHistoryRequest request;
    if (id.empty()) {
      request.mutable_devices()->set_device_class(kClass);
    } else {
      request.mutable_devices()->add_device_ids(id);
    }
    const auto history = core_->DeviceHistory(request);
    for (const auto& event : history->events()) {
      if (event.device_id() == id) what.push_back(event.what());
    }
    return what;
  }
  void Control(v1::DeviceCommand command, const std::string& id) {
    v1::ControlDevicesRequest request;
    request.mutable_devices()->add_device_ids(id);
    request.set_command(command);
    request.set_by("ann");
    request.set_reason("test");
    ASSERT_TRUE(core_->ControlDevices(request).ok());
    Drain();
  }
};

}  // namespace regatta

#endif  // REGATTA_TESTS_TRACKER_CANARY_FIXTURE_H_
