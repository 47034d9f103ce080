#include "server/query/rebuilds.h"

#include <sched.h>

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

bool Build(const RecordedBinary& binary, const BinaryHash& hash) {
  SpaceContext context;
  context.target = binary.target->target;
  context.threads = binary.threads;
  auto workload = ParseWorkload(binary.workload);
  if (!workload.ok()) return false;
  context.workload = *std::move(workload);
  const auto space = Space::Create(std::move(context));
  if (!space.ok()) return false;
  const auto built = hash(*space, binary.schedule.text());
  return built.ok() && *built == binary.hash;
}

// Boards may share the server's processors and must not be disturbed while they
// time.
void RunWhileProcessorsIdle() {
  const sched_param none = {};
  if (sched_setscheduler(/*pid=*/0, SCHED_IDLE, &none) != 0) {
    LOG(kWarning) << "builds that compare binaries run at ordinary priority";
  }
}

}  // namespace

GivesBinary BuildOnTheSpot(BinaryHash hash) {
  return [hash = std::move(hash)](const RecordedBinary& binary) {
    return Build(binary, hash);
  };
}

Rebuilds::Rebuilds(BinaryHash hash)
    : hash_(std::move(hash)), thread_([this] { Run(); }) {}

Rebuilds::~Rebuilds() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool Rebuilds::Gives(const RecordedBinary& binary) {
  const std::string key = Key(binary);
  std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  if (waiting_.size() >= kMaxWaiting) return false;
  if (known_.size() >= kMaxKnown) known_.clear();
  known_.emplace(key, false);
  waiting_.push_back(binary);
  changed_.notify_all();
  return false;
}

void Rebuilds::WaitUntilIdle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !building_; });
}

void Rebuilds::Run() {
  RunWhileProcessorsIdle();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
    if (closing_) return;
    const RecordedBinary binary = std::move(waiting_.front());
    waiting_.pop_front();
    building_ = true;
    lock.unlock();
    const bool gives = Build(binary, hash_);
    lock.lock();
    building_ = false;
    if (gives) known_[Key(binary)] = true;
    changed_.notify_all();
  }
}

}  // namespace regatta
