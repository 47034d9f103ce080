#include "tracker/core_loop.h"

#include <chrono>
#include <utility>

namespace regatta {
namespace {

// Inputs that are taken in together when they wait anyway.
constexpr size_t kGroup = 128;

}  // namespace

CoreLoop::CoreLoop(const TrackerOptions& options, const Clock& clock,
                   Random& random, FleetStore& store, Deliver deliver)
    : core_(options, clock, random, store),
      tick_(options.tick),
      deliver_(std::move(deliver)),
      thread_([this] { Run(); }) {}

CoreLoop::~CoreLoop() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void CoreLoop::Post(std::function<void(TrackerCore&)> input) {
  {
    std::lock_guard lock(mutex_);
    inputs_.push_back(std::move(input));
  }
  wake_.notify_one();
}

void CoreLoop::DeliverAll() {
  for (Action& action : core_.TakeActions()) deliver_(std::move(action));
}

void CoreLoop::Run() {
  const auto interval = absl::ToChronoNanoseconds(tick_);
  auto next_tick = std::chrono::steady_clock::now() + interval;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait_until(lock, next_tick,
                     [&] { return ending_ || !inputs_.empty(); });
    if (ending_ && inputs_.empty()) return;
    std::deque<std::function<void(TrackerCore&)>> inputs;
    inputs.swap(inputs_);
    lock.unlock();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i % kGroup == 0) core_.BeginGroup();
      inputs[i](core_);
      if ((i + 1) % kGroup != 0 && i + 1 != inputs.size()) continue;
      core_.EndGroup();
      DeliverAll();
    }
    if (const auto now = std::chrono::steady_clock::now(); now >= next_tick) {
      core_.Tick();
      DeliverAll();
      next_tick = now + interval;
    }
    lock.lock();
  }
}

}  // namespace regatta
