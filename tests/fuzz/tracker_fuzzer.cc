// Scripts of what agents and servers say to a tracker, in any order and with
// anything in it: nothing ends it, nothing is sent to a closed stream, and no
// message is larger than agents take.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "tests/fuzz/conversation.pb.h"
#include "tests/fuzz/message_mutator.h"
#include "tests/tracker/core_fixture.h"
#include "tracker/tracker_core.h"

namespace regatta {
namespace {

constexpr size_t kPeers = 4;
constexpr size_t kMaxSent = size_t{8} << 20;

class Player {
 public:
  Player() { Start(); }

  void Play(const fuzz::TrackerStep& step) {
    const size_t who = static_cast<uint32_t>(step.who()) % kPeers;
    switch (step.what_case()) {
      case fuzz::TrackerStep::kAgent:
        core_->AgentSaid(Session(who), step.agent());
        break;
      case fuzz::TrackerStep::kServer:
        core_->ServerSaid(Stream(who), step.server());
        break;
      case fuzz::TrackerStep::kAgentHangsUp:
        if (sessions_[who]) core_->SessionClosed(*sessions_[who]);
        sessions_[who].reset();
        break;
      case fuzz::TrackerStep::kServerHangsUp:
        if (streams_[who]) core_->ServerClosed(*streams_[who]);
        streams_[who].reset();
        break;
      case fuzz::TrackerStep::kWaitMs:
        clock_.Advance(
            absl::Milliseconds(std::clamp(step.wait_ms(), 0, 200'000)));
        core_->Tick();
        break;
      case fuzz::TrackerStep::kRestart:
        Start();
        break;
      case fuzz::TrackerStep::kGoodbye:
        core_->Goodbye(absl::Seconds(1));
        break;
      case fuzz::TrackerStep::kControl:
        core_->ControlDevices(step.control()).status().IgnoreError();
        break;
      case fuzz::TrackerStep::kHistory:
        core_->DeviceHistory(step.history()).status().IgnoreError();
        break;
      case fuzz::TrackerStep::kPowerDone:
        core_->PowerDone(step.power_done(), absl::UnavailableError("no"));
        break;
      case fuzz::TrackerStep::WHAT_NOT_SET:
        break;
    }
    Take();
    core_->ListDevices();
  }

 private:
  void Start() {
    core_.reset();
    ++store_.epoch;
    TrackerOptions options;
    options.fleet.auto_approve.classes = {"znver4-2c"};
    PowerHook& hook = options.fleet.boards["d1"].power.emplace();
    hook.unit = "pdu";
    hook.cycle.url = "http://pdu/1";
    core_ = std::make_unique<TrackerCore>(options, clock_, random_, store_);
    sessions_ = {};
    streams_ = {};
  }
  SessionId Session(size_t who) {
    if (!sessions_[who]) {
      sessions_[who] = SessionId{++last_id_};
      core_->SessionOpened(*sessions_[who]);
    }
    return *sessions_[who];
  }
  StreamId Stream(size_t who) {
    if (!streams_[who]) {
      streams_[who] = StreamId{++last_id_};
      core_->ServerOpened(*streams_[who]);
    }
    return *streams_[who];
  }
  template <typename Ids, typename Id>
  static void CheckOpen(const Ids& ids, Id id) {
    CHECK(std::count(ids.begin(), ids.end(), std::optional(id)) == 1)
        << "sent to a closed stream";
  }
  template <typename Ids, typename Id>
  static void Drop(Ids& ids, Id id) {
    CheckOpen(ids, id);
    std::replace(ids.begin(), ids.end(), std::optional(id),
                 std::optional<Id>());
  }
  void Take() {
    for (const Action& action : core_->TakeActions()) {
      if (const auto* send = std::get_if<SendToAgent>(&action)) {
        CheckOpen(sessions_, send->session);
        CHECK(send->message.ByteSizeLong() <= kMaxSent);
      } else if (const auto* close = std::get_if<CloseSession>(&action)) {
        Drop(sessions_, close->session);
      } else if (const auto* say = std::get_if<SendToServer>(&action)) {
        CheckOpen(streams_, say->stream);
      } else if (const auto* end = std::get_if<CloseServer>(&action)) {
        Drop(streams_, end->stream);
      }
    }
  }

  FakeClock clock_;
  Random random_{1};
  MemoryFleetStore store_;
  std::unique_ptr<TrackerCore> core_;
  std::array<std::optional<SessionId>, kPeers> sessions_;
  std::array<std::optional<StreamId>, kPeers> streams_;
  uint64_t last_id_ = 0;
};

}  // namespace
}  // namespace regatta

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  return fuzz::PlayText<fuzz::TrackerScript, Player>(data, size);
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max_size, unsigned seed) {
  regatta::fuzz::TrackerScript script;
  return regatta::fuzz::MutateText(script, data, size, max_size, seed);
}
