// Passes orders for modules from measure-only boards to builders, and what they
// answer back (fleet_service.proto, "Builders"). A state machine like the core
// that owns it; it looks into nothing that it passes on.
//
// Facts that hold after every call:
//  - an order that was taken is waiting, with one builder, or answered; the
//    board is told once what became of it, and once more when the builder is
//    lost before the board ended the order;
//  - a builder never has more orders to build than its slots, and only of
//  boards
//    that trust its key;
//  - what is kept is bounded: orders by board and in all, no answer and no
//  chunk
//    is kept.
//
// Not thread-safe.
#ifndef REGATTA_TRACKER_MODULE_RELAY_H_
#define REGATTA_TRACKER_MODULE_RELAY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "regatta/v1/fleet_service.pb.h"
#include "tracker/actions.h"

namespace regatta {

struct RelayOptions {
  size_t max_orders_per_board = 16;
  int64_t max_order_bytes = int64_t{64} << 20;  // kept in all
  absl::Duration min_limit = absl::Seconds(1);
  absl::Duration max_limit = absl::Minutes(10);
  // An answered order of which nothing is asked any more.
  absl::Duration max_idle = absl::Minutes(2);
  int max_losses = 3;  // builders lost in one order
  // An order that no builder here fits is answered after this, with the reason,
  // so that its board can say it; builders that just restart are waited for.
  absl::Duration none_fits = absl::Seconds(2);
};

// What a build needs of its builder. "" and 0: anything.
struct BuildNeeds {
  std::string kind;
  std::string architecture;
  std::string compiler_version;
  int32_t space_version = 0;
};

class ModuleRelay {
 public:
  // REQUIRES: `clock` outlives it.
  ModuleRelay(RelayOptions options, const Clock& clock)
      : options_(options), clock_(clock) {}

  // An agent is here as what its Hello says: builder, board that trusts
  // builders, both or neither.
  void Add(SessionId session, const v1::Hello& hello);
  // It is gone: its own orders are dropped, those that it builds go to others.
  void Remove(SessionId session);

  void OnOrder(SessionId board, const v1::BuildOrder& order);
  void OnAnswer(SessionId builder, const v1::BuildAnswer& answer);
  void OnBlobAsk(SessionId board, const v1::BlobAsk& ask);
  void OnChunk(SessionId builder, const v1::BlobChunk& chunk);
  void OnEnd(SessionId board, const v1::BuildEnd& end);
  void Tick();
  // The process stood still: deadlines move.
  void ExtendBy(absl::Duration stall);

  // The name of a builder that is here, fits and is trusted by the board; "":
  // none.
  std::string BuilderFor(SessionId board, const BuildNeeds& needs) const;
  // Why it has none, for people: which builders are here and what they lack.
  // REQUIRES: BuilderFor is "".
  std::string WhyNone(SessionId board, const BuildNeeds& needs) const;
  // Likewise for what the board ordered last; "" where a builder fits or it has
  // ordered nothing.
  std::string WhyWaiting(SessionId board) const;
  std::vector<v1::BuilderStatus> Builders() const;
  // Grows whenever a builder comes, goes or changes.
  int64_t change() const { return change_; }
  size_t orders() const { return orders_.size(); }

  std::vector<SendToAgent> TakeMessages() {
    return std::exchange(messages_, {});
  }

 private:
  struct Builder {
    std::string agent_id;
    v1::BuilderOffer offer;
    std::set<uint64_t> building;
    int64_t answered = 0;
  };
  struct Board {
    std::set<std::string> trusted;
    std::map<std::string, uint64_t> orders;  // by the board's id
    std::optional<BuildNeeds> ordered;       // last
  };
  struct Order {
    SessionId board{};
    v1::BuildOrder order;  // with the board's id; emptied of its request when
                           // answered
    int64_t bytes = 0;     // kept of it
    SteadyTime deadline;
    bool given = false;     // to `builder`
    bool answered = false;  // by `builder`
    SessionId builder{};
    int losses = 0;
    std::optional<SteadyTime> unfit_since;  // no builder here fits
    std::set<std::string> declined;         // agents that said unavailable
    std::string last_reason;
    int chunks_due = 0;
  };

  static BuildNeeds NeedsOf(const v1::BuildOrder& order);
  static bool Fits(const Builder& builder, const Board& board,
                   const BuildNeeds& needs);
  // nullptr: no such order, or another board's.
  Order* FindOfBoard(SessionId board, const std::string& order_id,
                     uint64_t* id);
  Order* FindOfBuilder(SessionId builder, const std::string& order_id,
                       uint64_t* id);
  // That nothing came of a waiting order, for the board.
  std::string NothingOf(const Order& order) const;
  // Gives waiting orders to builders with free slots.
  void Place();
  // To a builder with a free slot; false when it goes on waiting. It may end
  // here, when every builder that fits has declined.
  bool PlaceOne(uint64_t id, Order& order);
  void TakeFromBuilder(uint64_t id, Order& order, bool tell);
  // The board is told that nothing comes of it.
  void Fail(uint64_t id, const std::string& why);
  void Erase(uint64_t id);
  void Send(SessionId session, v1::TrackerMessage message);

  const RelayOptions options_;
  const Clock& clock_;
  std::map<SessionId, Builder> builders_;
  std::map<SessionId, Board> boards_;
  std::map<uint64_t, Order> orders_;  // by age
  std::set<uint64_t> waiting_;
  int64_t bytes_ = 0;
  uint64_t last_order_ = 0;
  int64_t change_ = 0;
  int64_t fitted_change_ = 0;  // at which all waiting orders were looked at
  std::vector<SendToAgent> messages_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_MODULE_RELAY_H_
