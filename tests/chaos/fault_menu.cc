#include "tests/chaos/fault_menu.h"

#include <signal.h>

#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace regatta::testing {
namespace {

using Direction = FaultProxy::Direction;

constexpr absl::Duration kPreyLimit = absl::Seconds(3);
constexpr double kShortestSeconds = 0.2, kLongestSeconds = 12;

// What runs below agents.
const std::vector<std::string> kWorkers = {
    "regatta-spawner", "regatta-build-worker", "regatta-run-worker"};

}  // namespace

FaultMenu::FaultMenu(Cluster* cluster, bool disks, uint64_t seed)
    : cluster_(cluster), disks_(disks), random_(seed) {}

absl::Duration FaultMenu::Span() {
  return absl::Seconds(
      kShortestSeconds *
      std::pow(kLongestSeconds / kShortestSeconds, random_.Unit()));
}

std::string FaultMenu::Last(const std::string& what, absl::Duration span,
                            std::function<void()> undo) {
  active_.push_back({RealClock().Steady() + span, std::move(undo)});
  return absl::StrFormat("%s for %.1f s", what, absl::ToDoubleSeconds(span));
}

std::string FaultMenu::Begin() {
  const std::vector<std::pair<int, std::string (FaultMenu::*)()>> menu = {
      {6, &FaultMenu::Kill},
      {3, &FaultMenu::Stop},
      {3, &FaultMenu::Cut},
      {3, &FaultMenu::HalfOpen},
      {2, &FaultMenu::Slow},
      {1, &FaultMenu::Refuse},
      {disks_ ? 2 : 0, &FaultMenu::FillDisk}};
  int total = 0;
  for (const auto& [weight, begin] : menu) total += weight;
  auto drawn = static_cast<int>(random_.Below(static_cast<uint64_t>(total)));
  for (const auto& [weight, begin] : menu) {
    drawn -= weight;
    if (drawn < 0) return (this->*begin)();
  }
  return "";
}

bool FaultMenu::KillNow(const Prey& prey) {
  const pid_t pid = cluster_->PidOf(prey.daemon, prey.worker);
  if (pid <= 0 || kill(pid, SIGKILL) != 0) return false;
  const std::string kind =
      absl::StartsWith(prey.daemon, "agent") ? "agent" : prey.daemon;
  ++done_[absl::StrCat("kill ", prey.worker.empty() ? kind : prey.worker)];
  return true;
}

std::string FaultMenu::Kill() {
  Prey prey;
  prey.until = RealClock().Steady() + kPreyLimit;
  prey.daemon = Draw(cluster_->daemons());
  if (absl::StartsWith(prey.daemon, "agent") && random_.Below(2) == 0) {
    prey.worker = Draw(kWorkers);
  }
  const std::string what = absl::StrCat(
      "kill ", prey.worker, prey.worker.empty() ? "" : " of ", prey.daemon);
  if (KillNow(prey)) return what;
  if (prey.worker.empty()) return what + " (not there)";
  prey_.push_back(prey);
  return what + " (when it is there)";
}

std::string FaultMenu::Stop() {
  const std::string daemon = Draw(cluster_->daemons());
  const bool spawner =
      absl::StartsWith(daemon, "agent") && random_.Below(3) == 0;
  const std::string worker = spawner ? "regatta-spawner" : "";
  const absl::Duration span = Span();
  const pid_t pid = cluster_->PidOf(daemon, worker);
  const std::string what =
      absl::StrCat("stop ", spawner ? worker + " of " : "", daemon);
  if (pid <= 0 || kill(pid, SIGSTOP) != 0) return what + " (not there)";
  ++done_["stop"];
  return Last(what, span, [this, daemon, worker, pid] {
    // Its number may be another's by now.
    if (cluster_->PidOf(daemon, worker) == pid) kill(pid, SIGCONT);
  });
}

std::string FaultMenu::Cut() {
  const std::string link = Draw(cluster_->links());
  ++done_["cut"];
  if (random_.Below(2) == 0) {
    const Direction direction =
        random_.Below(2) == 0 ? Direction::kToTarget : Direction::kFromTarget;
    const auto bytes = static_cast<int64_t>(random_.Below(4096));
    cluster_->link(link).CutAfter(direction, bytes);
    return absl::StrCat("cut ", link, " after ", bytes, " bytes");
  }
  cluster_->link(link).Cut();
  return absl::StrCat("cut ", link);
}

std::string FaultMenu::HalfOpen() {
  const std::string name = Draw(cluster_->links());
  FaultProxy* const link = &cluster_->link(name);
  const uint64_t which = random_.Below(4);
  const bool to = which != 0, from = which != 1;  // half of them: both
  if (to) link->Hold(Direction::kToTarget, true);
  if (from) link->Hold(Direction::kFromTarget, true);
  const std::string what = to && from ? "half-open"
                           : to       ? "deaf tracker"
                                      : "mute tracker";
  ++done_[what];
  const bool cut = random_.Below(2) == 0;
  return Last(absl::StrCat(what, " ", name), Span(), [link, to, from, cut] {
    // After an outage TCP goes on or has given up.
    if (cut) link->Cut();
    if (to) link->Hold(Direction::kToTarget, false);
    if (from) link->Hold(Direction::kFromTarget, false);
  });
}

std::string FaultMenu::Slow() {
  const std::string name = Draw(cluster_->links());
  FaultProxy* const link = &cluster_->link(name);
  if (random_.Below(2) == 0) {
    const int64_t bytes_per_s = 4'000 << random_.Below(5);
    link->Throttle(bytes_per_s);
    ++done_["throttle"];
    return Last(absl::StrCat("throttle ", name, " to ", bytes_per_s, " B/s"),
                Span(), [link] { link->Throttle(0); });
  }
  const absl::Duration delay =
      absl::Milliseconds(20 << random_.Below(7));  // up to 1.3 s
  link->Delay(delay);
  ++done_["delay"];
  return Last(absl::StrCat("delay ", name, " by ", absl::FormatDuration(delay)),
              Span(), [link] { link->Delay(absl::ZeroDuration()); });
}

std::string FaultMenu::Refuse() {
  const std::string name = Draw(cluster_->links());
  FaultProxy* const link = &cluster_->link(name);
  link->Refuse(true);
  link->Cut();
  ++done_["refuse"];
  return Last(absl::StrCat("refuse ", name), Span(),
              [link] { link->Refuse(false); });
}

std::string FaultMenu::FillDisk() {
  const std::string name = Draw(cluster_->daemons());
  SmallDisk* const disk = &cluster_->disk(name);
  disk->Fill();
  ++done_["full disk"];
  return Last(absl::StrCat("full disk of ", name), Span(),
              [disk] { disk->Free(); });
}

void FaultMenu::EndDue() {
  const SteadyTime now = RealClock().Steady();
  std::erase_if(prey_, [&](const Prey& prey) {
    return prey.until < now || KillNow(prey);
  });
  for (size_t i = 0; i < active_.size();) {
    if (active_[i].until > now) {
      ++i;
      continue;
    }
    active_[i].undo();
    active_.erase(active_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void FaultMenu::EndAll() {
  for (const Active& active : active_) active.undo();
  active_.clear();
  prey_.clear();
  for (const std::string& name : cluster_->links()) cluster_->link(name).Heal();
}

}  // namespace regatta::testing
