// Scripts of what a tracker says to an agent, with results, restarts and a bad
// disk between: nothing ends it, what it sends fits a message, and a result is
// forgotten only when it was acknowledged.
#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "device_agent/loop/agent_loop.h"
#include "device_agent/loop/spool.h"
#include "tests/device_agent/loop/fake_spool_storage.h"
#include "tests/fuzz/conversation.pb.h"
#include "tests/fuzz/message_mutator.h"

namespace regatta {
namespace {

constexpr size_t kMaxMessage = size_t{1} << 20;

class Player {
 public:
  Player() { Start(); }

  void Play(const fuzz::AgentStep& step) {
    const int64_t before = spool_->count();
    switch (step.what_case()) {
      case fuzz::AgentStep::kTracker:
        loop_->OnMessage(step.tracker());
        break;
      case fuzz::AgentStep::kConnected:
        loop_->OnConnected();
        break;
      case fuzz::AgentStep::kDisconnected:
        loop_->OnDisconnected(absl::UnavailableError("gone"));
        break;
      case fuzz::AgentStep::kFinished:
        loop_->OnResult(step.finished().assignment_id(),
                        step.finished().result(), step.finished().last());
        break;
      case fuzz::AgentStep::kDevices:
        loop_->OnDevices(
            {step.devices().devices().begin(), step.devices().devices().end()});
        break;
      case fuzz::AgentStep::kWaitMs:
        clock_.Advance(
            absl::Milliseconds(std::clamp(step.wait_ms(), 0, 200'000)));
        loop_->OnTick(++ticks_);
        break;
      case fuzz::AgentStep::kDiskBroken:
        disk_.broken = step.disk_broken();
        break;
      case fuzz::AgentStep::kRestart:
        if (!disk_.broken) Start();
        break;
      case fuzz::AgentStep::WHAT_NOT_SET:
        break;
    }
    Settle();
    const bool acked = step.has_tracker() && step.tracker().has_result_ack();
    CHECK(acked || step.has_restart() || spool_->count() >= before)
        << "a result is gone";
  }

 private:
  void Start() {
    loop_.reset();
    spool_.reset();
    auto spool = Spool::Open(std::make_unique<FakeSpoolStorage>(&disk_), {});
    CHECK(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
    AgentLoop::Options options;
    options.hello.set_protocol_version(v1::PROTOCOL_VERSION_CURRENT);
    options.hello.set_agent_id("a1");
    options.hello.set_instance_id("i1");
    options.hello.set_compiler_version("c1");
    v1::DeviceInfo* device = options.hello.add_devices();
    device->set_device_id("d1");
    device->set_device_class("znver4-2c");
    device->set_credit(2);
    loop_ = std::make_unique<AgentLoop>(std::move(options), &clock_, Random(1),
                                        spool_.get());
    Settle();
  }
  void Settle() {
    for (const AgentAction& action : loop_->Settle()) {
      if (const auto* send = std::get_if<SendAction>(&action)) {
        CHECK(send->message.ByteSizeLong() <= kMaxMessage)
            << send->message.ByteSizeLong() << " bytes";
      }
    }
    loop_->NextWake();
  }

  FakeClock clock_;
  FakeDisk disk_;
  int64_t ticks_ = 0;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<AgentLoop> loop_;
};

}  // namespace
}  // namespace regatta

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  return fuzz::PlayText<fuzz::AgentScript, Player>(data, size);
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max_size, unsigned seed) {
  regatta::fuzz::AgentScript script;
  return regatta::fuzz::MutateText(script, data, size, max_size, seed);
}
