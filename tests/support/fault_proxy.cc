#include "tests/support/fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/host_port.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace regatta::testing {
namespace {

constexpr size_t kReadBytes = 16 << 10;
// Held by a pump; beyond it the sender is not read from, as by a full window.
constexpr size_t kMostHeld = 256 << 10;
constexpr int kDirections = 2;

absl::Status SystemError(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", strerror(errno)));
}

absl::StatusOr<sockaddr_in> AddressOf(const std::string& text) {
  ASSIGN_OR_RETURN(const auto host_port, SplitHostPort(text));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(host_port.second));
  if (inet_pton(AF_INET, host_port.first.c_str(), &address.sin_addr) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" has no numeric host"));
  }
  return address;
}

// As a network that lost it: the peer gets RST.
void Reset(UniqueFd* socket) {
  const linger now = {1, 0};
  setsockopt(socket->get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  socket->Reset();
}

int IndexOf(FaultProxy::Direction direction) {
  return direction == FaultProxy::Direction::kToTarget ? 0 : 1;
}

struct Faults {
  bool refuse = false;
  std::array<bool, kDirections> hold = {};
  absl::Duration delay;
  int64_t bytes_per_s = 0;
};

}  // namespace

// One direction of one connection.
class FaultProxy::Pump {
 public:
  bool WantsToRead() const { return !ended_ && held_bytes_ < kMostHeld; }
  // Whether it has something to write by `now`; else `when` it has.
  bool WantsToWrite(const Faults& faults, int index, SteadyTime now,
                    std::optional<SteadyTime>* when) const {
    if (faults.hold[index]) return false;
    if (chunks_.empty()) return ended_ && !finished_;
    const SteadyTime at = std::max(chunks_.front().due, next_write_);
    if (at <= now) return true;
    *when = at;
    return false;
  }
  void Take(std::string bytes, SteadyTime due) {
    held_bytes_ += bytes.size();
    chunks_.push_back({std::move(bytes), due});
  }
  void End() { ended_ = true; }
  bool finished() const { return finished_; }

  // Bytes written; -1: the receiver is gone.
  int64_t Write(int to, const Faults& faults, SteadyTime now) {
    if (chunks_.empty()) {
      shutdown(to, SHUT_WR);
      finished_ = true;
      return 0;
    }
    std::string& bytes = chunks_.front().bytes;
    size_t most = bytes.size();
    // A tenth of a second's worth at a time.
    if (faults.bytes_per_s > 0) {
      most = std::min(most, static_cast<size_t>(
                                std::max<int64_t>(1, faults.bytes_per_s / 10)));
    }
    if (cut_after_.has_value()) {
      most = std::min(most, static_cast<size_t>(*cut_after_));
      if (most == 0) return -1;
    }
    const ssize_t wrote = send(to, bytes.data(), most, MSG_NOSIGNAL);
    if (wrote < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (faults.bytes_per_s > 0) {
      next_write_ = now + absl::Seconds(1) * wrote / faults.bytes_per_s;
    }
    if (cut_after_.has_value()) *cut_after_ -= wrote;
    held_bytes_ -= static_cast<size_t>(wrote);
    bytes.erase(0, static_cast<size_t>(wrote));
    if (bytes.empty()) chunks_.pop_front();
    return wrote;
  }
  void CutAfter(int64_t bytes) { cut_after_ = bytes; }
  bool ToBeCut() const { return cut_after_ == 0; }
  // What waits goes on now.
  void Hurry() {
    for (Chunk& chunk : chunks_) chunk.due = SteadyTime();
    next_write_ = SteadyTime();
    cut_after_.reset();
  }

 private:
  struct Chunk {
    std::string bytes;
    SteadyTime due;
  };
  std::deque<Chunk> chunks_;
  size_t held_bytes_ = 0;
  SteadyTime next_write_;
  bool ended_ = false;     // the sender sends nothing more
  bool finished_ = false;  // the receiver was told
  std::optional<int64_t> cut_after_;
};

class FaultProxy::Connection {
 public:
  int64_t number = 0;
  // The end that dialled, and the target's.
  std::array<UniqueFd, kDirections> ends;
  std::array<Pump, kDirections> pumps;  // [d] reads ends[d], writes the other
  std::array<bool, kDirections> gone = {};  // the peer was reset
  bool connecting = true;
};

class FaultProxy::Loop {
 public:
  Loop(UniqueFd listener, int port, sockaddr_in target, Tap tap)
      : listener_(std::move(listener)),
        port_(port),
        target_(target),
        tap_(std::move(tap)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this] { Run(); }) {}
  ~Loop() {
    Change([this] { stopping_ = true; });
    thread_.join();
    for (Connection& connection : connections_) ResetBoth(&connection);
  }

  int port() const { return port_; }
  // Does it between two steps of the loop.
  template <typename What>
  void Change(What what) {
    {
      std::lock_guard lock(mutex_);
      what();
    }
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote =
        write(wake_.get(), &one, sizeof(one));
  }
  Counts counts() const {
    std::lock_guard lock(mutex_);
    Counts counts = counts_;
    counts.open = static_cast<int64_t>(connections_.size());
    return counts;
  }

  // With the mutex held, as everything below but Run.
  void CutAll() {
    for (Connection& connection : connections_) ResetBoth(&connection);
    Sweep();
  }
  void CutAllAfter(int index, int64_t bytes) {
    for (Connection& connection : connections_) {
      connection.pumps[index].CutAfter(bytes);
    }
  }
  void HealAll() {
    faults = Faults();
    corrupt = {};
    cut_plan = {};
    for (Connection& connection : connections_) {
      for (Pump& pump : connection.pumps) pump.Hurry();
    }
  }

  Faults faults;
  std::array<bool, kDirections> corrupt = {};
  CutPlan cut_plan;

 private:
  void Run();
  // What is polled for one round: the first two are the loop's own, then two
  // for each connection of `numbers`, in the order of connections_.
  struct Round {
    std::vector<pollfd> polled;
    std::vector<int64_t> numbers;
    int timeout_ms = -1;
  };
  Round NextRound() const;
  void Step(const Round& round);
  void Accept();
  void Serve(Connection* connection, const pollfd& dialler,
             const pollfd& target);
  bool Read(Connection* connection, int index);
  void ResetBoth(Connection* connection);
  void Sweep() {
    connections_.remove_if(
        [](const Connection& c) { return !c.ends[0].valid(); });
  }

  mutable std::mutex mutex_;
  const UniqueFd listener_;
  const int port_;
  const sockaddr_in target_;
  const Tap tap_;
  const UniqueFd wake_;
  std::list<Connection> connections_;
  Counts counts_;
  bool stopping_ = false;
  std::thread thread_;
};

void FaultProxy::Loop::ResetBoth(Connection* connection) {
  if (!connection->ends[0].valid()) return;
  for (UniqueFd& end : connection->ends) Reset(&end);
  ++counts_.reset;
  if (tap_) tap_(connection->number, Direction::kFromTarget, "");
}

FaultProxy::Loop::Round FaultProxy::Loop::NextRound() const {
  const SteadyTime now = RealClock().Steady();
  std::optional<SteadyTime> soonest;
  Round round;
  round.polled = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  for (const Connection& connection : connections_) {
    std::array<short, kDirections> events = {};
    if (connection.connecting) events[1] = POLLOUT;
    for (int d = 0; d < kDirections && !connection.connecting; ++d) {
      const Pump& pump = connection.pumps[d];
      if (pump.WantsToRead()) events[d] |= POLLIN;
      std::optional<SteadyTime> when;
      if (pump.WantsToWrite(faults, d, now, &when)) events[1 - d] |= POLLOUT;
      if (when.has_value() && (!soonest.has_value() || *when < *soonest)) {
        soonest = when;
      }
    }
    for (int d = 0; d < kDirections; ++d) {
      const int fd = connection.gone[d] ? -1 : connection.ends[d].get();
      round.polled.push_back({fd, events[d], 0});
    }
    round.numbers.push_back(connection.number);
  }
  if (soonest.has_value()) {
    round.timeout_ms =
        1 + static_cast<int>(absl::ToInt64Milliseconds(*soonest - now));
  }
  return round;
}

void FaultProxy::Loop::Run() {
  for (;;) {
    Round round;
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return;
      round = NextRound();
    }
    poll(round.polled.data(), round.polled.size(), round.timeout_ms);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got =
        read(wake_.get(), &count, sizeof(count));
    std::lock_guard lock(mutex_);
    Step(round);
  }
}

void FaultProxy::Loop::Step(const Round& round) {
  // Those polled may have been cut meanwhile, which takes them off the list.
  size_t at = 0;
  for (Connection& connection : connections_) {
    while (at < round.numbers.size() && round.numbers[at] < connection.number) {
      ++at;
    }
    if (at == round.numbers.size()) break;
    Serve(&connection, round.polled[2 + 2 * at], round.polled[3 + 2 * at]);
  }
  Sweep();
  if (round.polled[1].revents != 0) Accept();
}

void FaultProxy::Loop::Accept() {
  UniqueFd dialler(
      accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!dialler.valid()) return;
  ++counts_.accepted;
  if (faults.refuse) {
    Reset(&dialler);
    ++counts_.reset;
    return;
  }
  Connection& connection = connections_.emplace_back();
  connection.number = counts_.accepted;
  if (const auto cut = cut_plan ? cut_plan(connection.number) : std::nullopt) {
    connection.pumps[IndexOf(cut->direction)].CutAfter(cut->bytes);
  }
  connection.ends[0] = std::move(dialler);
  connection.ends[1] =
      UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  for (const UniqueFd& end : connection.ends) {
    setsockopt(end.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  if (connect(connection.ends[1].get(),
              reinterpret_cast<const sockaddr*>(&target_),
              sizeof(target_)) != 0 &&
      errno != EINPROGRESS) {
    ResetBoth(&connection);
    Sweep();
  }
}

bool FaultProxy::Loop::Read(Connection* connection, int index) {
  std::string bytes(kReadBytes, '\0');
  const ssize_t got =
      recv(connection->ends[index].get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  Pump& pump = connection->pumps[index];
  if (got == 0) {
    pump.End();
    return true;
  }
  bytes.resize(static_cast<size_t>(got));
  if (tap_) {
    tap_(connection->number,
         index == 0 ? Direction::kToTarget : Direction::kFromTarget, bytes);
  }
  if (corrupt[index]) {
    bytes[0] = static_cast<char>(bytes[0] ^ 1);
    corrupt[index] = false;
    ++counts_.corrupted;
  }
  pump.Take(std::move(bytes), faults.delay > absl::ZeroDuration()
                                  ? RealClock().Steady() + faults.delay
                                  : SteadyTime());
  return true;
}

void FaultProxy::Loop::Serve(Connection* connection, const pollfd& dialler,
                             const pollfd& target) {
  const std::array<short, kDirections> events = {dialler.revents,
                                                 target.revents};
  if (connection->connecting) {
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(connection->ends[1].get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0 || (events[0] & (POLLERR | POLLNVAL)) != 0) {
      return ResetBoth(connection);
    }
    if ((events[1] & POLLOUT) != 0) connection->connecting = false;
    return;
  }
  const SteadyTime now = RealClock().Steady();
  for (int d = 0; d < kDirections; ++d) {
    // That an end is gone is news, which is held as all that it says is.
    connection->gone[d] |= (events[d] & (POLLERR | POLLNVAL)) != 0;
    if (connection->gone[d]) {
      if (!faults.hold[d]) return ResetBoth(connection);
      continue;
    }
    if ((events[d] & (POLLIN | POLLHUP)) != 0 &&
        connection->pumps[d].WantsToRead() && !Read(connection, d)) {
      return ResetBoth(connection);
    }
  }
  for (int d = 0; d < kDirections; ++d) {
    Pump& pump = connection->pumps[d];
    std::optional<SteadyTime> when;
    if (!pump.WantsToWrite(faults, d, now, &when)) continue;
    const int64_t wrote =
        pump.Write(connection->ends[1 - d].get(), faults, now);
    if (wrote < 0 || pump.ToBeCut()) return ResetBoth(connection);
    (d == 0 ? counts_.to_target_bytes : counts_.from_target_bytes) += wrote;
  }
  if (connection->pumps[0].finished() && connection->pumps[1].finished()) {
    for (UniqueFd& end : connection->ends) end.Reset();
    if (tap_) tap_(connection->number, Direction::kFromTarget, "");
  }
}

absl::StatusOr<std::unique_ptr<FaultProxy>> FaultProxy::Start(
    const std::string& target, Tap tap) {
  ASSIGN_OR_RETURN(const sockaddr_in to, AddressOf(target));
  UniqueFd listener(
      socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.valid()) return SystemError("socket");
  sockaddr_in here = {};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(here);
  auto* const address = reinterpret_cast<sockaddr*>(&here);
  if (bind(listener.get(), address, size) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0 ||
      getsockname(listener.get(), address, &size) != 0) {
    return SystemError("listening");
  }
  return std::unique_ptr<FaultProxy>(new FaultProxy(std::make_unique<Loop>(
      std::move(listener), ntohs(here.sin_port), to, std::move(tap))));
}

FaultProxy::FaultProxy(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
FaultProxy::~FaultProxy() = default;

std::string FaultProxy::address() const {
  return absl::StrCat("127.0.0.1:", loop_->port());
}
void FaultProxy::Cut() {
  loop_->Change([this] { loop_->CutAll(); });
}
void FaultProxy::CutAfter(Direction direction, int64_t bytes) {
  loop_->Change([&] { loop_->CutAllAfter(IndexOf(direction), bytes); });
}
void FaultProxy::CutNewcomers(CutPlan plan) {
  loop_->Change([&] { loop_->cut_plan = std::move(plan); });
}
void FaultProxy::Refuse(bool on) {
  loop_->Change([&] { loop_->faults.refuse = on; });
}
void FaultProxy::Hold(Direction direction, bool on) {
  loop_->Change([&] { loop_->faults.hold[IndexOf(direction)] = on; });
}
void FaultProxy::Delay(absl::Duration delay) {
  loop_->Change([&] { loop_->faults.delay = delay; });
}
void FaultProxy::Throttle(int64_t bytes_per_s) {
  loop_->Change([&] { loop_->faults.bytes_per_s = bytes_per_s; });
}
void FaultProxy::CorruptByte(Direction direction) {
  loop_->Change([&] { loop_->corrupt[IndexOf(direction)] = true; });
}
void FaultProxy::Heal() {
  loop_->Change([this] { loop_->HealAll(); });
}
FaultProxy::Counts FaultProxy::counts() const { return loop_->counts(); }

}  // namespace regatta::testing
