#include "tracker/wait_reason.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tracker/health.h"

namespace regatta {
namespace {

std::string Coarse(absl::Duration d) {
  const int64_t seconds = absl::ToInt64Seconds(d);
  if (seconds < 60) return absl::StrCat(seconds / 10 * 10, " s");
  if (seconds < 3600) return absl::StrCat(seconds / 60, " min");
  if (seconds < 48 * 3600) return absl::StrCat(seconds / 3600, " h");
  return absl::StrCat(seconds / 86400, " days");
}

std::string Boards(int64_t count, const std::string& device_class) {
  return absl::StrCat(count, " ", device_class,
                      count == 1 ? " board" : " boards");
}

// Those that are not online, by how they are away.
std::string Away(const std::vector<BoardView>& boards) {
  std::vector<std::string> parts;
  for (const auto& [presence, name] :
       {std::pair{v1::PRESENCE_LOST, "lost"},
        std::pair{v1::PRESENCE_SUSPECT, "suspect"},
        std::pair{v1::PRESENCE_REBOOTING, "rebooting"}}) {
    int64_t count = 0;
    absl::Duration shortest = absl::InfiniteDuration();
    for (const BoardView& board : boards) {
      if (board.presence != presence) continue;
      ++count;
      shortest = std::min(shortest, board.silent);
    }
    if (count > 0) {
      parts.push_back(
          absl::StrCat(count, " ", name, " for ", Coarse(shortest)));
    }
  }
  return absl::StrJoin(parts, ", ");
}

// How online boards of the class differ from what the work needs.
std::string Differences(const MatchKey& key,
                        const std::vector<BoardView>& boards) {
  std::map<std::string, int64_t> counts;
  for (const BoardView& board : boards) {
    if (board.presence != v1::PRESENCE_ONLINE) continue;
    const auto named = [](const std::string& version) {
      return version.empty() ? std::string("none") : version;
    };
    if (board.key.compiler_version != key.compiler_version) {
      ++counts[absl::StrCat("compiler ", named(board.key.compiler_version),
                            ", the job needs ", named(key.compiler_version))];
    } else {
      ++counts[absl::StrCat("space ", named(board.key.space), " version ",
                            board.key.space_version, ", the job needs ",
                            named(key.space), " version ", key.space_version)];
    }
  }
  std::vector<std::string> parts;
  for (const auto& [difference, count] : counts) {
    parts.push_back(absl::StrCat(Boards(count, key.device_class),
                                 count == 1 ? " has " : " have ", difference));
  }
  return absl::StrJoin(parts, "; ");
}

// Why it works for no job, wherever it is; "": it does.
std::string ObstacleTo(const BoardView& board) {
  switch (board.not_free) {
    case NotFree::kHeld:
      return board.obstacle;
    case NotFree::kBraked:
      return "kept from work with the whole class";
    case NotFree::kSwitched:
      return "kept from work while its power is being switched";
    case NotFree::kUnproven:
      return "to be proven by a canary";
    default:
      return "";
  }
}

// "3 of 6 rpi5 boards drained by ann: fan swap", one part for each obstacle.
std::vector<std::string> Obstacles(const std::string& name,
                                   const std::vector<BoardView>& boards) {
  std::map<std::string, int64_t> counts;
  for (const BoardView& board : boards) {
    if (std::string what = ObstacleTo(board); !what.empty()) ++counts[what];
  }
  std::vector<std::string> parts;
  for (const auto& [obstacle, count] : counts) {
    parts.push_back(absl::StrCat(
        count, " of ", Boards(std::ssize(boards), name), " ", obstacle));
  }
  return parts;
}

// What there is to say of a board that is online and not merely busy; "":
// nothing.
std::string NoteOf(const MatchKey& key, const BoardView& board) {
  const std::string who = "board " + board.device_id;
  switch (board.not_free) {
    case NotFree::kStuck:
      return who + " is stuck: its work loop stands still";
    case NotFree::kAway:
      return who + " has yet to show its devices";
    case NotFree::kNoBuilder:
      return absl::StrCat(who, " waits for a builder of compiler ",
                          key.compiler_version,
                          ": none that it trusts is online");
    case NotFree::kDraining:
      return absl::StrCat(
          who, " takes no work now: ",
          board.health.empty() ? std::string("no credit") : board.health);
    case NotFree::kResting:
      if (board.refusal.empty()) {
        return who + " rests a moment after work that it gave back";
      }
      break;
    default:
      break;
  }
  if (board.not_free == NotFree::kBusy || board.refusal.empty()) return "";
  return absl::StrCat(who, " refused: ", board.refusal);
}

// Of boards that neither people nor the tracker keep from work.
std::string FreeToWork(const MatchKey& key,
                       const std::vector<BoardView>& boards) {
  const std::string& name = key.device_class;
  int64_t online = 0;
  std::vector<BoardView> matching;
  for (const BoardView& board : boards) {
    if (board.presence != v1::PRESENCE_ONLINE) continue;
    ++online;
    if (board.key == key) matching.push_back(board);
  }
  if (online == 0) {
    return absl::StrCat("no ", name, " board is online; ", Away(boards));
  }
  if (matching.empty()) return Differences(key, boards);

  int64_t busy = 0;
  int64_t free = 0;
  std::vector<std::string> notes;
  for (const BoardView& board : matching) {
    if (std::string note = NoteOf(key, board); !note.empty()) {
      notes.push_back(std::move(note));
    } else {
      ++(board.not_free == NotFree::kBusy ? busy : free);
    }
  }
  std::vector<std::string> parts;
  if (busy > 0 || free > 0) {
    parts.push_back(
        absl::StrCat(busy, " of ", matching.size(), " ", name,
                     matching.size() == 1 ? " board busy" : " boards busy"));
  }
  if (free > 0) {
    parts.push_back("the free ones are to be avoided or failed this work");
  }
  parts.insert(parts.end(), notes.begin(), notes.end());
  return absl::StrJoin(parts, "; ");
}

}  // namespace

std::string WaitText(const MatchKey& key,
                     const std::vector<BoardView>& boards) {
  const std::string& name = key.device_class;
  if (boards.empty()) return absl::StrCat("no ", name, " board is registered");
  std::vector<BoardView> free;  // of obstacles
  for (const BoardView& board : boards) {
    if (ObstacleTo(board).empty()) free.push_back(board);
  }
  std::vector<std::string> parts = Obstacles(name, boards);
  if (!free.empty()) parts.insert(parts.begin(), FreeToWork(key, free));
  return absl::StrJoin(parts, "; ");
}

}  // namespace regatta
