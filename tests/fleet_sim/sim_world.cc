#include "tests/fleet_sim/sim_world.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace regatta::fleet_sim {
namespace {

// Messages are heard between them, though all boards start at once.
constexpr int kTimersAtOnce = 32;
constexpr absl::Duration kPublishEvery = absl::Milliseconds(100);
// A killed agent's process is back after this.
constexpr absl::Duration kRestartTakes = absl::Seconds(2);

}  // namespace

// A board and its connection.
class SimWorld::Slot : public BoardLink {
 public:
  Slot(SimWorld* world, size_t index, uint64_t seed)
      : world_(world),
        board_(world->hellos_[index], world->options_.habits, seed,
               &world->clock_, this, &world->ledger_),
        index_(index) {}

  SimBoard& board() { return board_; }

  void Boot() {
    CHECK(board_.Boot()) << "the disk in memory failed";
    board_.OnWake();
    Rearm();
  }

  // To be called after the board was given anything.
  void Rearm() {
    const auto moved = [](int64_t& seen, int64_t now, int64_t& total) {
      total += now - seen;
      seen = now;
    };
    moved(welcomed_, board_.welcomed() ? 1 : 0, world_->now_.welcomed);
    moved(spooled_, board_.spooled(), world_->now_.spooled);
    moved(held_, board_.held(), world_->now_.held);
    const SteadyTime wake = board_.NextWake();
    if (wake.ns >= armed_ || wake.ns == INT64_MAX) return;
    armed_ = wake.ns;
    world_->At(wake, [this, at = wake.ns] {
      if (armed_ != at) return;  // an earlier one came in between
      armed_ = INT64_MAX;
      board_.OnWake();
      Rearm();
    });
  }

  // The connection breaks, as the board sees it.
  void Cut() {
    if (connection_ == 0) return;
    Close();
    board_.OnDisconnected(absl::UnavailableError("cut"));
    Rearm();
  }

  void Open() override {
    ++world_->now_.connects;
    if (client_ == nullptr) client_ = world_->make_client_(index_);
    const int64_t connection = ++last_connection_;
    connection_ = connection;
    heartbeats_.clear();
    last_out_ = last_in_ = SteadyTime{};
    TrackerConnection::Callbacks callbacks;
    callbacks.on_message = [this, connection](v1::TrackerMessage message) {
      const SteadyTime at = world_->clock_.Steady();
      world_->Post([this, connection, at, message = std::move(message)] {
        if (connection == connection_) Received(at, message);
      });
    };
    callbacks.on_closed = [this, connection](absl::Status why) {
      world_->Post([this, connection, why = std::move(why)] {
        if (connection != connection_) return;
        connection_ = 0;
        board_.OnDisconnected(why);
        Rearm();
      });
    };
    client_->Open(std::move(callbacks));
    // The stream takes messages from now on; whether it works shows later.
    world_->Post([this, connection] {
      if (connection != connection_) return;
      board_.OnConnected();
      Rearm();
    });
  }

  void Send(v1::AgentMessage message) override {
    if (world_->options_.latency == absl::ZeroDuration()) {
      return Transmit(std::move(message));
    }
    last_out_ = std::max(last_out_, world_->clock_.Steady() + world_->Delay());
    world_->At(last_out_,
               [this, connection = connection_,
                message = std::move(message)]() mutable {
                 if (connection == connection_) Transmit(std::move(message));
               });
  }

  void Close() override {
    connection_ = 0;
    if (client_ != nullptr) client_->Close(absl::ZeroDuration());
  }

  void Drop() { client_.reset(); }

 private:
  void Transmit(v1::AgentMessage message) {
    const SteadyTime now = world_->clock_.Steady();
    if (message.has_heartbeat()) {
      heartbeats_[message.heartbeat().sequence()] = now;
    }
    for (const v1::SpooledResult& spooled : message.result_batch().results()) {
      results_.try_emplace(spooled.result().spec().trial_id(), now);
    }
    client_->Send(std::move(message));
  }

  void Received(SteadyTime at, const v1::TrackerMessage& message) {
    if (message.has_welcome() && marked_ != world_->now_mark_) {
      marked_ = world_->now_mark_;
      ++world_->now_.arrived;
    }
    if (message.has_heartbeat_ack()) {
      const auto sent = heartbeats_.find(message.heartbeat_ack().sequence());
      if (sent != heartbeats_.end()) {
        world_->times_now_.heartbeats.Add(at - sent->second);
        ++world_->now_.heartbeats;
        heartbeats_.erase(sent);
      }
    }
    for (const v1::TrialAck& ack : message.result_ack().acks()) {
      const auto sent = results_.find(ack.trial_id());
      if (sent == results_.end()) continue;
      world_->times_now_.acks.Add(at - sent->second);
      results_.erase(sent);
    }
    if (world_->options_.latency == absl::ZeroDuration()) return Hear(message);
    last_in_ = std::max(last_in_, at + world_->Delay());
    world_->At(last_in_, [this, connection = connection_, message] {
      if (connection == connection_) Hear(message);
    });
  }

  void Hear(const v1::TrackerMessage& message) {
    board_.OnMessage(message);
    Rearm();
  }

  SimWorld* const world_;
  SimBoard board_;
  const size_t index_;
  std::unique_ptr<TrackerConnection> client_;
  int64_t connection_ = 0;  // 0: none
  int64_t last_connection_ = 0;
  SteadyTime last_out_, last_in_;  // messages of one way keep their order
  int64_t armed_ = INT64_MAX;
  int64_t marked_ = 0;                             // welcomed since this mark
  int64_t welcomed_ = 0, spooled_ = 0, held_ = 0;  // as counted in the world
  std::unordered_map<int64_t, SteadyTime> heartbeats_;   // unanswered
  std::unordered_map<std::string, SteadyTime> results_;  // by first sending
};

SimWorld::SimWorld(const WorldOptions& options, std::vector<v1::Hello> boards,
                   MakeClient make_client)
    : options_(options),
      clock_(RealClock()),
      hellos_(std::move(boards)),
      make_client_(std::move(make_client)),
      random_(options.seed) {}

SimWorld::~SimWorld() { Stop(); }

void SimWorld::Start() {
  const SteadyTime start = clock_.Steady();
  for (size_t i = 0; i < hellos_.size(); ++i) {
    slots_.push_back(std::make_unique<Slot>(this, i, random_.Next()));
    At(start + options_.boot_over * random_.Unit(),
       [slot = slots_[i].get()] { slot->Boot(); });
  }
  NextFault(/*cut=*/true);
  NextFault(/*cut=*/false);
  thread_ = std::thread([this] { Run(); });
}

void SimWorld::NextFault(bool cut) {
  const double per_hour =
      (cut ? options_.cuts_per_hour : options_.restarts_per_hour) *
      static_cast<double>(hellos_.size());
  if (per_hour <= 0) return;
  const double seconds = -std::log(1 - random_.Unit()) * 3600 / per_hour;
  At(clock_.Steady() + absl::Seconds(seconds), [this, cut] {
    {
      std::lock_guard lock(mutex_);
      if (calm_) return;
    }
    Slot* slot = slots_[random_.Below(slots_.size())].get();
    if (cut) {
      ++now_.cuts;
      slot->Cut();
    } else if (slot->board().up()) {
      ++now_.restarts;
      slot->board().Kill();
      slot->Rearm();
      At(clock_.Steady() + kRestartTakes * random_.Unit(),
         [slot] { slot->Boot(); });
    }
    NextFault(cut);
  });
}

void SimWorld::Calm() {
  std::lock_guard lock(mutex_);
  calm_ = true;
}

void SimWorld::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  for (auto& slot : slots_) slot->Close();
  for (auto& slot : slots_) slot->Drop();
}

WorldCounts SimWorld::Counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

void SimWorld::Mark() {
  std::lock_guard lock(mutex_);
  ++mark_;
  counts_.arrived = 0;
}

SimWorld::Times SimWorld::TakeTimes() {
  std::lock_guard lock(mutex_);
  take_times_ = true;
  return std::exchange(times_, {});
}

void SimWorld::Post(Event event) {
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = events_.empty();
    events_.push_back(std::move(event));
  }
  if (first) wake_.notify_one();
}

void SimWorld::At(SteadyTime at, Event event) {
  timers_.push({at.ns, ++timer_order_, std::move(event)});
}

absl::Duration SimWorld::Delay() {
  return options_.latency * (0.5 + random_.Unit());
}

void SimWorld::RunDue(SteadyTime now) {
  for (int i = 0;
       i < kTimersAtOnce && !timers_.empty() && timers_.top().at <= now.ns;
       ++i) {
    const Event event = std::move(const_cast<Timer&>(timers_.top()).event);
    timers_.pop();
    event();
  }
}

void SimWorld::Publish() {
  now_.assigned = ledger_.assigned();
  now_.finished = ledger_.finished();
  now_.acknowledged = ledger_.acknowledged();
  now_.repeated_acks = ledger_.repeated_acks();
  now_.rejected = ledger_.rejected();
  std::lock_guard lock(mutex_);
  if (std::exchange(take_times_, false)) times_now_ = {};
  if (std::exchange(now_mark_, mark_) != mark_) now_.arrived = 0;
  counts_ = now_;
  times_ = times_now_;
}

void SimWorld::Run() {
  SteadyTime publish_at;
  while (true) {
    std::vector<Event> events;
    {
      std::unique_lock lock(mutex_);
      const absl::Duration wait =
          timers_.empty()
              ? kPublishEvery
              : std::clamp(
                    absl::Nanoseconds(timers_.top().at - clock_.Steady().ns),
                    absl::ZeroDuration(), kPublishEvery);
      wake_.wait_for(lock, absl::ToChronoNanoseconds(wait),
                     [this] { return stopping_ || !events_.empty(); });
      if (stopping_) break;
      events.swap(events_);
    }
    for (const Event& event : events) event();
    const SteadyTime now = clock_.Steady();
    RunDue(now);
    if (now >= publish_at) {
      Publish();
      publish_at = now + kPublishEvery;
    }
  }
  Publish();
}

}  // namespace regatta::fleet_sim
