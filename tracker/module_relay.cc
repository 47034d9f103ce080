#include "tracker/module_relay.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace regatta {
namespace {

// A board has one chunk of an order under way; one more may be asked again.
constexpr int kMaxChunksDue = 2;

std::string NeedsText(const BuildNeeds& needs) {
  std::string text = needs.kind;
  if (!needs.architecture.empty()) {
    absl::StrAppend(&text, " for ", needs.architecture);
  }
  if (!needs.compiler_version.empty()) {
    absl::StrAppend(&text, ", compiler ", needs.compiler_version);
  }
  if (needs.space_version != 0) {
    absl::StrAppend(&text, ", space version ", needs.space_version);
  }
  return text;
}

// Enough of a key to know it by.
std::string ShortKey(const std::string& key) {
  return absl::StrCat(absl::BytesToHexString(key).substr(0, 16), "...");
}

// What a builder builds for: "cpu, opencl".
std::string ReachText(const v1::BuilderReach& reach) {
  std::set<std::string> kinds;
  for (const v1::KindReach& kind : reach.kinds()) kinds.insert(kind.kind());
  return kinds.empty() ? "nothing" : absl::StrJoin(kinds, ", ");
}

bool Reaches(const v1::KindReach& reach, const BuildNeeds& needs) {
  const auto& architectures = reach.architectures();
  return reach.kind() == needs.kind &&
         (needs.compiler_version.empty() ||
          reach.compiler_version() == needs.compiler_version) &&
         (needs.space_version == 0 ||
          reach.space_version() == needs.space_version) &&
         (needs.architecture.empty() || architectures.empty() ||
          std::find(architectures.begin(), architectures.end(),
                    needs.architecture) != architectures.end());
}

}  // namespace

// ---- who is here

void ModuleRelay::Add(SessionId session, const v1::Hello& hello) {
  if (!hello.trusted_builders().empty()) {
    Board& board = boards_[session];
    board.trusted.insert(hello.trusted_builders().begin(),
                         hello.trusted_builders().end());
  }
  if (!hello.has_builder()) return;
  Builder& builder = builders_[session];
  builder.agent_id = hello.agent_id();
  builder.offer = hello.builder();
  ++change_;
  Place();
}

void ModuleRelay::Remove(SessionId session) {
  if (const auto board = boards_.find(session); board != boards_.end()) {
    const std::map<std::string, uint64_t> orders = board->second.orders;
    for (const auto& [name, id] : orders) {
      TakeFromBuilder(id, orders_.at(id), /*tell=*/true);
      Erase(id);
    }
    boards_.erase(session);
  }
  const auto builder = builders_.find(session);
  if (builder == builders_.end()) {
    Place();  // slots may have become free
    return;
  }
  const std::string name = builder->second.agent_id;
  builders_.erase(builder);
  ++change_;
  std::vector<uint64_t> lost;
  for (auto& [id, order] : orders_) {
    if ((order.given || order.answered) && order.builder == session) {
      lost.push_back(id);
    }
  }
  for (const uint64_t id : lost) {
    Order& order = orders_.at(id);
    const std::string why = absl::StrCat("builder ", name, " was lost");
    order.last_reason = why;
    if (order.answered || ++order.losses >= options_.max_losses) {
      Fail(id, why);
      continue;
    }
    order.given = false;
    waiting_.insert(id);
  }
  Place();
}

bool ModuleRelay::Fits(const Builder& builder, const Board& board,
                       const BuildNeeds& needs) {
  if (!board.trusted.contains(builder.offer.public_key())) return false;
  const auto& kinds = builder.offer.reach().kinds();
  return std::any_of(
      kinds.begin(), kinds.end(),
      [&](const v1::KindReach& reach) { return Reaches(reach, needs); });
}

std::string ModuleRelay::BuilderFor(SessionId session,
                                    const BuildNeeds& needs) const {
  const auto board = boards_.find(session);
  if (board == boards_.end()) return "";
  for (const auto& [builder_session, builder] : builders_) {
    if (Fits(builder, board->second, needs)) return builder.agent_id;
  }
  return "";
}

std::string ModuleRelay::WhyNone(SessionId session,
                                 const BuildNeeds& needs) const {
  const auto board = boards_.find(session);
  if (board == boards_.end()) return "its agent names no builder";
  std::vector<std::string> unfit, others;
  for (const auto& [builder_session, builder] : builders_) {
    if (board->second.trusted.contains(builder.offer.public_key())) {
      unfit.push_back(absl::StrCat(builder.agent_id, " (",
                                   ReachText(builder.offer.reach()), ")"));
    } else {
      others.push_back(absl::StrCat(builder.agent_id, " ",
                                    ShortKey(builder.offer.public_key())));
    }
  }
  if (!unfit.empty()) {
    return absl::StrCat("no builder that it trusts builds for ",
                        NeedsText(needs), "; online are ",
                        absl::StrJoin(unfit, ", "));
  }
  std::vector<std::string> keys;
  for (const std::string& key : board->second.trusted) {
    keys.push_back(ShortKey(key));
  }
  return absl::StrCat(
      "no builder with key ", absl::StrJoin(keys, " or "), " is online; ",
      others.empty()
          ? "nor is any other"
          : absl::StrCat("online are ", absl::StrJoin(others, ", ")));
}

std::string ModuleRelay::WhyWaiting(SessionId session) const {
  const auto board = boards_.find(session);
  if (board == boards_.end() || !board->second.ordered.has_value()) return "";
  const BuildNeeds& needs = *board->second.ordered;
  return BuilderFor(session, needs).empty() ? WhyNone(session, needs) : "";
}

std::vector<v1::BuilderStatus> ModuleRelay::Builders() const {
  std::vector<v1::BuilderStatus> list;
  for (const auto& [session, builder] : builders_) {
    v1::BuilderStatus& status = list.emplace_back();
    status.set_agent_id(builder.agent_id);
    status.set_public_key(builder.offer.public_key());
    status.set_slots(builder.offer.slots());
    status.set_building(static_cast<int64_t>(builder.building.size()));
    status.set_answered(builder.answered);
    *status.mutable_reach() = builder.offer.reach();
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.agent_id() < b.agent_id();
  });
  return list;
}

// ---- orders

BuildNeeds ModuleRelay::NeedsOf(const v1::BuildOrder& order) {
  return {order.kind(), order.architecture(), order.compiler_version(),
          order.space_version()};
}

void ModuleRelay::OnOrder(SessionId session, const v1::BuildOrder& order) {
  const auto board = boards_.find(session);
  const auto refuse = [&](const std::string& why) {
    v1::TrackerMessage message;
    message.mutable_build_answer()->set_order_id(order.order_id());
    message.mutable_build_answer()->set_unavailable(why);
    Send(session, std::move(message));
  };
  if (board == boards_.end()) {
    return refuse("an agent that trusts no builder orders no modules");
  }
  board->second.ordered = NeedsOf(order);
  // Sent twice: it is on its way.
  if (board->second.orders.contains(order.order_id())) return;
  if (board->second.orders.size() >= options_.max_orders_per_board) {
    return refuse(absl::StrCat("more than ", options_.max_orders_per_board,
                               " orders of one board at once"));
  }
  const auto bytes = static_cast<int64_t>(order.ByteSizeLong());
  if (bytes_ + bytes > options_.max_order_bytes) {
    return refuse("the tracker has no room for more orders");
  }
  const uint64_t id = ++last_order_;
  board->second.orders[order.order_id()] = id;
  Order& taken = orders_[id];
  taken.board = session;
  taken.order = order;
  taken.bytes = bytes;
  bytes_ += bytes;
  taken.deadline =
      clock_.Steady() + std::clamp(absl::Milliseconds(order.limit_ms()),
                                   options_.min_limit, options_.max_limit);
  waiting_.insert(id);
  if (PlaceOne(id, taken)) waiting_.erase(id);
}

void ModuleRelay::Place() {
  const bool room =
      std::any_of(builders_.begin(), builders_.end(), [](const auto& entry) {
        const Builder& builder = entry.second;
        return builder.building.size() <
               static_cast<size_t>(builder.offer.slots());
      });
  if (!room) return;
  const std::set<uint64_t> waiting = waiting_;
  for (const uint64_t id : waiting) {
    const auto order = orders_.find(id);
    if (order == orders_.end()) continue;
    if (PlaceOne(id, order->second)) waiting_.erase(id);
  }
}

bool ModuleRelay::PlaceOne(uint64_t id, Order& order) {
  const BuildNeeds needs = NeedsOf(order.order);
  const Board& board = boards_.at(order.board);
  std::pair<const SessionId, Builder>* best = nullptr;
  bool fitting = false;
  bool all_declined = true;
  for (auto& entry : builders_) {
    const Builder& builder = entry.second;
    if (!Fits(builder, board, needs)) continue;
    fitting = true;
    if (order.declined.contains(builder.agent_id)) continue;
    all_declined = false;
    if (builder.building.size() >= static_cast<size_t>(builder.offer.slots())) {
      continue;
    }
    if (best == nullptr ||
        builder.building.size() < best->second.building.size()) {
      best = &entry;
    }
  }
  if (fitting) {
    order.unfit_since.reset();
  } else if (!order.unfit_since.has_value()) {
    order.unfit_since = clock_.Steady();
  }
  if (fitting && all_declined) {
    Fail(id, order.last_reason);
    return false;
  }
  if (best == nullptr) return false;
  order.given = true;
  order.builder = best->first;
  best->second.building.insert(id);
  v1::TrackerMessage message;
  v1::BuildOrder& out = *message.mutable_build_order();
  out = order.order;
  out.set_order_id(absl::StrCat(id));
  out.set_limit_ms(std::max<int64_t>(
      1, absl::ToInt64Milliseconds(order.deadline - clock_.Steady())));
  Send(order.builder, std::move(message));
  return true;
}

void ModuleRelay::TakeFromBuilder(uint64_t id, Order& order, bool tell) {
  if (!order.given && !order.answered) return;
  const auto builder = builders_.find(order.builder);
  if (builder == builders_.end()) return;
  builder->second.building.erase(id);
  if (!tell) return;
  v1::TrackerMessage message;
  message.mutable_build_end()->set_order_id(absl::StrCat(id));
  Send(order.builder, std::move(message));
}

void ModuleRelay::Fail(uint64_t id, const std::string& why) {
  Order& order = orders_.at(id);
  v1::TrackerMessage message;
  message.mutable_build_answer()->set_order_id(order.order.order_id());
  message.mutable_build_answer()->set_unavailable(why);
  Send(order.board, std::move(message));
  TakeFromBuilder(id, order, /*tell=*/true);
  Erase(id);
}

void ModuleRelay::Erase(uint64_t id) {
  const Order& order = orders_.at(id);
  bytes_ -= order.bytes;
  if (const auto board = boards_.find(order.board); board != boards_.end()) {
    board->second.orders.erase(order.order.order_id());
  }
  waiting_.erase(id);
  orders_.erase(id);
}

ModuleRelay::Order* ModuleRelay::FindOfBoard(SessionId session,
                                             const std::string& order_id,
                                             uint64_t* id) {
  const auto board = boards_.find(session);
  if (board == boards_.end()) return nullptr;
  const auto found = board->second.orders.find(order_id);
  if (found == board->second.orders.end()) return nullptr;
  *id = found->second;
  return &orders_.at(*id);
}

ModuleRelay::Order* ModuleRelay::FindOfBuilder(SessionId session,
                                               const std::string& order_id,
                                               uint64_t* id) {
  if (!absl::SimpleAtoi(order_id, id)) return nullptr;
  const auto found = orders_.find(*id);
  if (found == orders_.end()) return nullptr;
  Order& order = found->second;
  const bool its = (order.given || order.answered) && order.builder == session;
  return its ? &order : nullptr;
}

void ModuleRelay::OnAnswer(SessionId session, const v1::BuildAnswer& answer) {
  uint64_t id = 0;
  Order* order = FindOfBuilder(session, answer.order_id(), &id);
  // Late, or sent twice.
  if (order == nullptr || order->answered) return;
  Builder& builder = builders_.at(session);
  builder.building.erase(id);
  order->given = false;
  if (!answer.unavailable().empty()) {
    order->last_reason =
        absl::StrCat("builder ", builder.agent_id, ": ", answer.unavailable());
    order->declined.insert(builder.agent_id);
    waiting_.insert(id);
    if (PlaceOne(id, *order)) waiting_.erase(id);
    Place();
    return;
  }
  ++builder.answered;
  order->answered = true;
  order->order.clear_request();
  bytes_ -= order->bytes;
  order->bytes = 0;
  order->deadline = clock_.Steady() + options_.max_idle;
  v1::TrackerMessage message;
  *message.mutable_build_answer() = answer;
  message.mutable_build_answer()->set_order_id(order->order.order_id());
  Send(order->board, std::move(message));
  Place();
}

void ModuleRelay::OnBlobAsk(SessionId session, const v1::BlobAsk& ask) {
  uint64_t id = 0;
  Order* order = FindOfBoard(session, ask.order_id(), &id);
  if (order == nullptr || !order->answered) {
    v1::TrackerMessage message;
    v1::BlobChunk& none = *message.mutable_blob_chunk();
    none.set_order_id(ask.order_id());
    none.set_digest(ask.digest());
    none.set_offset(ask.offset());
    none.set_unavailable("the order has ended");
    return Send(session, std::move(message));
  }
  if (order->chunks_due >= kMaxChunksDue) return;
  ++order->chunks_due;
  order->deadline = clock_.Steady() + options_.max_idle;
  v1::TrackerMessage message;
  *message.mutable_blob_ask() = ask;
  message.mutable_blob_ask()->set_order_id(absl::StrCat(id));
  Send(order->builder, std::move(message));
}

void ModuleRelay::OnChunk(SessionId session, const v1::BlobChunk& chunk) {
  uint64_t id = 0;
  Order* order = FindOfBuilder(session, chunk.order_id(), &id);
  if (order == nullptr || !order->answered || order->chunks_due == 0) return;
  --order->chunks_due;
  order->deadline = clock_.Steady() + options_.max_idle;
  v1::TrackerMessage message;
  *message.mutable_blob_chunk() = chunk;
  message.mutable_blob_chunk()->set_order_id(order->order.order_id());
  Send(order->board, std::move(message));
}

void ModuleRelay::OnEnd(SessionId session, const v1::BuildEnd& end) {
  uint64_t id = 0;
  Order* order = FindOfBoard(session, end.order_id(), &id);
  if (order == nullptr) return;
  TakeFromBuilder(id, *order, /*tell=*/true);
  Erase(id);
  Place();
}

// ---- time

std::string ModuleRelay::NothingOf(const Order& order) const {
  const BuildNeeds needs = NeedsOf(order.order);
  const std::string none =
      BuilderFor(order.board, needs).empty()
          ? WhyNone(order.board, needs)
          : absl::StrCat("no builder of ", NeedsText(needs),
                         " that the board trusts is free");
  return order.last_reason.empty()
             ? none
             : absl::StrCat(none, "; the last: ", order.last_reason);
}

void ModuleRelay::Tick() {
  if (fitted_change_ != change_) {  // notes which orders fit nobody any more
    fitted_change_ = change_;
    for (const uint64_t id : std::set<uint64_t>(waiting_)) {
      if (PlaceOne(id, orders_.at(id))) waiting_.erase(id);
    }
  }
  const SteadyTime now = clock_.Steady();
  std::vector<uint64_t> over;
  for (const auto& [id, order] : orders_) {
    const bool unfit = waiting_.contains(id) && order.unfit_since.has_value() &&
                       now >= *order.unfit_since + options_.none_fits;
    if (unfit || now >= order.deadline) over.push_back(id);
  }
  for (const uint64_t id : over) {
    Order& order = orders_.at(id);
    if (order.answered) {  // the board has lost interest
      TakeFromBuilder(id, order, /*tell=*/true);
      Erase(id);
    } else if (order.given) {
      Fail(id, absl::StrCat("builder ", builders_.at(order.builder).agent_id,
                            " did not answer in time"));
    } else {
      Fail(id, NothingOf(order));
    }
  }
  if (!over.empty()) Place();
}

void ModuleRelay::ExtendBy(absl::Duration stall) {
  for (auto& [id, order] : orders_) {
    order.deadline = order.deadline + stall;
    if (order.unfit_since) order.unfit_since = *order.unfit_since + stall;
  }
}

void ModuleRelay::Send(SessionId session, v1::TrackerMessage message) {
  messages_.push_back({session, std::move(message)});
}

}  // namespace regatta
