#include "device_agent/loop/agent_runtime.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/time/time.h"
#include "base/check.h"

namespace regatta {
namespace {

// Leases are counted on a clock that goes on while the machine sleeps, waiting
// is not: never wait longer than this.
constexpr absl::Duration kLongestWait = absl::Seconds(5);
// For the releases that say goodbye.
constexpr absl::Duration kLinger = absl::Milliseconds(500);

}  // namespace

AgentRuntime::AgentRuntime(AgentLoop::Options options, const Clock* clock,
                           Random random, std::unique_ptr<Spool> spool,
                           TrackerConnection* connection)
    : clock_(clock),
      spool_(std::move(spool)),
      connection_(connection),
      loop_(std::move(options), clock, random, spool_.get()) {
  vitals_.spooled = spool_->count();
}

AgentRuntime::~AgentRuntime() { Stop(); }

TrialRunner::ResultCallback AgentRuntime::ResultSink() {
  return [this](const std::string& assignment_id, v1::TrialResult result,
                bool last) {
    Post([assignment_id, result = std::move(result), last](AgentLoop& loop) {
      loop.OnResult(assignment_id, result, last);
    });
  };
}

std::function<bool(const std::string&)> AgentRuntime::StartGate() {
  return [this](const std::string& assignment_id) {
    return loop_.gate().MayStart(assignment_id);
  };
}

void AgentRuntime::Start(TrialRunner* runner) {
  CHECK(runner_ == nullptr) << "started twice";
  runner_ = runner;
  thread_ = std::thread([this] { Run(); });
}

void AgentRuntime::SetDevices(std::vector<v1::DeviceInfo> devices) {
  Post([devices = std::move(devices)](AgentLoop& loop) {
    loop.OnDevices(devices);
  });
}

void AgentRuntime::SetWindow(const std::string& device_id,
                             absl::Duration longest) {
  Post([device_id, longest](AgentLoop& loop) {
    loop.OnWindow(device_id, longest);
  });
}

void AgentRuntime::SetBuildPeer(BuildPeer* peer) {
  CHECK(runner_ == nullptr) << "started already";
  peer_ = peer;
}

void AgentRuntime::SendBuildMessage(v1::AgentMessage message) {
  Post([message = std::move(message)](AgentLoop& loop) {
    loop.OnBuildMessage(message);
  });
}

void AgentRuntime::Drain(const std::string& reason,
                         absl::Duration returns_within) {
  Post([this, reason, returns_within](AgentLoop& loop) {
    loop.OnDrain(reason, returns_within);
    draining_ = true;
  });
}

void AgentRuntime::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

AgentRuntime::Vitals AgentRuntime::vitals() const {
  std::lock_guard lock(mutex_);
  return vitals_;
}

void AgentRuntime::Post(Event event) {
  {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  wake_.notify_one();
}

void AgentRuntime::Run() {
  bool stopping = false;
  while (!stopping) {
    std::deque<Event> events;
    {
      std::unique_lock lock(mutex_);
      const absl::Duration wait =
          std::clamp(loop_.NextWake() - clock_->Steady(), absl::ZeroDuration(),
                     kLongestWait);
      wake_.wait_for(lock, absl::ToChronoNanoseconds(wait),
                     [this] { return stopping_ || !events_.empty(); });
      events.swap(events_);
      stopping = stopping_;
    }
    // All that waits is taken together, so that results share one sync.
    for (Event& event : events) event(loop_);
    if (stopping) {
      loop_.OnShutdown();
    } else {
      loop_.OnTick(runner_->WorkTicks());
    }
    for (AgentAction& action : loop_.Settle()) Perform(action);
    const Vitals now = {spool_->count(), spool_->Fullness(), loop_.held()};
    std::lock_guard lock(mutex_);
    vitals_ = now;
    if (draining_) drained_ = loop_.drained();
  }
}

void AgentRuntime::Perform(AgentAction& action) {
  if (auto* send = std::get_if<SendAction>(&action)) {
    connection_->Send(std::move(send->message));
  } else if (auto* start = std::get_if<StartAction>(&action)) {
    runner_->Start(std::move(start->assignment));
  } else if (auto* stop = std::get_if<StopAction>(&action)) {
    runner_->Stop(stop->assignment_id);
  } else if (auto* finish = std::get_if<FinishAction>(&action)) {
    const std::string id = finish->assignment_id;
    runner_->Finish(id, [this, id] {
      Post([id](AgentLoop& loop) { loop.OnFinished(id); });
    });
  } else if (auto* session = std::get_if<SessionAction>(&action)) {
    if (peer_ != nullptr) peer_->OnSession(session->state);
  } else if (auto* build = std::get_if<BuildAction>(&action)) {
    if (peer_ != nullptr) peer_->OnBuildMessage(build->message);
  } else if (std::holds_alternative<CloseAction>(action)) {
    ++connection_number_;
    bool stopping;
    {
      std::lock_guard lock(mutex_);
      stopping = stopping_;
    }
    connection_->Close(stopping ? kLinger : absl::ZeroDuration());
  } else {
    Open();
  }
}

void AgentRuntime::Open() {
  const int64_t number = ++connection_number_;
  TrackerConnection::Callbacks callbacks;
  callbacks.on_message = [this, number](v1::TrackerMessage message) {
    Post([this, number, message = std::move(message)](AgentLoop& loop) {
      if (number == connection_number_) loop.OnMessage(message);
    });
  };
  callbacks.on_closed = [this, number](absl::Status why) {
    Post([this, number, why = std::move(why)](AgentLoop& loop) {
      if (number == connection_number_) loop.OnDisconnected(why);
    });
  };
  connection_->Open(std::move(callbacks));
  // The stream takes messages from now on; whether it works shows later.
  Post([number, this](AgentLoop& loop) {
    if (number == connection_number_) loop.OnConnected();
  });
}

}  // namespace regatta
