#include "server/query/rebuilds.h"

#include <sched.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "compiler/ops/op.h"

namespace regatta {
namespace {

// Line breaks, which none of these texts has, keep them apart.
std::string Key(const RecordedBinary& binary) {
  return absl::StrCat(binary.hash, "\n", binary.threads, "\n",
                      binary.target->text, "\n",
                      binary.target->compiler_version, "\n", binary.workload,
                      "\n", binary.schedule.text());
}

// Absent: this machine lacked something for the build; another time it may not.
std::optional<bool> Build(const RecordedBinary& binary,
                          const BinaryHash& hash) {
  SpaceContext context;
  context.target = binary.target->target;
  context.threads = binary.threads;
  auto workload = ParseWorkload(binary.workload);
  if (!workload.ok()) return false;
  context.workload = *std::move(workload);
  const auto space = Space::Create(std::move(context));
  if (!space.ok()) return false;
  const auto built = hash(*space, binary.schedule.text());
  if (absl::IsResourceExhausted(built.status())) {
    LOG(kWarning) << "building a measured binary again: "
                  << built.status().message();
    return std::nullopt;
  }
  return built.ok() && *built == binary.hash;
}

// Boards may share the server's processors and must not be disturbed while they
// time.
void RunWhileProcessorsIdle() {
  const sched_param none = {};
  if (sched_setscheduler(/*pid=*/0, SCHED_IDLE, &none) != 0) {
    LOG(kWarning) << "a build that compares binaries runs at ordinary priority";
  }
}

// Where that is not allowed, it goes on as it is.
void RunAsOthersDo(pid_t thread) {
  const sched_param none = {};
  (void)sched_setscheduler(thread, SCHED_OTHER, &none);
}

}  // namespace

GivesBinary BuildOnTheSpot(BinaryHash hash) {
  return [hash = std::move(hash)](const RecordedBinary& binary) {
    return Build(binary, hash).value_or(false);
  };
}

Rebuilds::Rebuilds(BinaryHash hash, size_t max_known)
    : hash_(std::move(hash)),
      max_known_(max_known),
      thread_([this] { Run(); }) {}

Rebuilds::~Rebuilds() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  if (const pid_t builder = builder_; builder != 0) RunAsOthersDo(builder);
  changed_.notify_all();
  thread_.join();
}

bool Rebuilds::Gives(const RecordedBinary& binary) {
  std::string key = Key(binary);
  std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  if (waiting_.size() >= kMaxWaiting || !asked_.insert(key).second) {
    return false;
  }
  waiting_.emplace_back(std::move(key), binary);
  changed_.notify_all();
  return false;
}

void Rebuilds::WaitUntilIdle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return asked_.empty(); });
}

// Nobody waits for this thread but the one that joins it: at its priority it
// may stand still for long, and must hold no lock.
std::optional<bool> Rebuilds::BuildWhileIdle(const RecordedBinary& binary) {
  std::optional<bool> gives;
  try {
    std::thread([&] {
      RunWhileProcessorsIdle();
      builder_ = gettid();
      if (closing_) RunAsOthersDo(gettid());
      gives = Build(binary, hash_);
      builder_ = 0;
    }).join();
  } catch (const std::system_error& error) {
    LOG(kWarning) << "building a measured binary again: " << error.what();
  }
  return gives;
}

void Rebuilds::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
    if (closing_) return;
    const auto [key, binary] = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    const std::optional<bool> gives = BuildWhileIdle(binary);
    lock.lock();
    asked_.erase(key);
    if (gives.has_value()) Remember(key, *gives);
    changed_.notify_all();
  }
}

void Rebuilds::Remember(const std::string& key, bool gives) {
  known_.emplace(key, gives);
  oldest_.push_back(key);
  if (oldest_.size() <= max_known_) return;
  known_.erase(oldest_.front());
  oldest_.pop_front();
}

}  // namespace regatta
