#include "device_agent/remote/order_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/memory_file.h"
#include "base/status_macros.h"
#include "device_agent/remote/build_seal.h"

namespace regatta {

OrderBuilder::OrderBuilder(SigningKey key, std::string name,
                           std::vector<Slot> slots, const CoreLocks* cores,
                           Send send)
    : key_(std::move(key)),
      name_(std::move(name)),
      cores_(cores),
      send_(std::move(send)),
      slots_(std::move(slots)) {
  for (Slot& slot : slots_) {
    threads_.emplace_back([this, &slot] { Work(slot); });
  }
}

OrderBuilder::~OrderBuilder() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  for (Slot& slot : slots_) slot.worker->Abort();
  for (std::thread& thread : threads_) thread.join();
}

void OrderBuilder::OnSession(const SessionState& state) {
  std::lock_guard lock(mutex_);
  if (state.up == up_) return;
  up_ = state.up;
  // The tracker gives what was ordered to others.
  ++session_;
  waiting_.clear();
  building_.clear();
}

void OrderBuilder::OnBuildMessage(const v1::TrackerMessage& message) {
  if (message.has_blob_ask()) return SendChunk(message.blob_ask());
  std::unique_lock lock(mutex_);
  if (message.has_build_end()) {
    const std::string& id = message.build_end().order_id();
    std::erase_if(waiting_, [&](const Order& order) {
      return order.order.order_id() == id;
    });
    building_.erase(id);
    return;
  }
  if (!message.has_build_order()) return;
  const v1::BuildOrder& order = message.build_order();
  if (waiting_.size() >= kMaxWaiting) {
    lock.unlock();
    return send_(Declined(order.order_id(), "too many orders wait here"));
  }
  waiting_.push_back({order, session_});
  changed_.notify_one();
}

bool OrderBuilder::TakeOrder(Order* order) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
  if (ending_) return false;
  *order = std::move(waiting_.front());
  waiting_.pop_front();
  building_[order->order.order_id()] = order->session;
  return true;
}

bool OrderBuilder::Wanted(const Order& order) {
  std::lock_guard lock(mutex_);
  return WantedLocked(order);
}

bool OrderBuilder::WantedLocked(const Order& order) const {
  const auto found = building_.find(order.order.order_id());
  return !ending_ && found != building_.end() && found->second == order.session;
}

void OrderBuilder::Work(Slot& slot) {
  for (Order order; TakeOrder(&order);) {
    Carry(order, slot);
    std::lock_guard lock(mutex_);
    // Another session's order of the same id may be another slot's by now.
    if (WantedLocked(order)) building_.erase(order.order.order_id());
  }
}

const OrderBuilder::Kept* OrderBuilder::FindKept(const std::string& key,
                                                 const std::string& digest) {
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
        return key.empty() ? kept.answer.digest() == digest : kept.key == key;
      });
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return &kept_.front();
}

void OrderBuilder::Keep(Kept kept) {
  std::lock_guard lock(mutex_);
  kept_bytes_ += kept.answer.file_bytes();
  kept_.push_front(std::move(kept));
  while (kept_.size() > 1 &&
         (kept_.size() > kMaxKept || kept_bytes_ > kMaxKeptBytes)) {
    kept_bytes_ -= kept_.back().answer.file_bytes();
    kept_.pop_back();
  }
}

absl::StatusOr<OrderBuilder::Kept> OrderBuilder::Build(
    const v1::BuildOrder& order, Slot& slot,
    const std::function<bool()>& cancelled) const {
  v1::BuildRequest request;
  if (!request.ParseFromString(order.request()) ||
      request.request_case() == v1::BuildRequest::REQUEST_NOT_SET) {
    return absl::InvalidArgumentError("the order asks for nothing");
  }
  ASSIGN_OR_RETURN(const CoreLocks::Held core,
                   cores_->Take({slot.cpu}, CoreLocks::Use::kBuild, cancelled));
  ASSIGN_OR_RETURN(BuildWorker::Reply reply,
                   slot.worker->Call(std::move(request), cancelled));
  if (reply.response.failure().outcome() == v1::OUTCOME_DEVICE_FAULT) {
    // What this machine lacks another may have.
    return absl::UnavailableError(reply.response.failure().detail());
  }
  Kept made;
  made.key = Sha256Hex(order.request());
  reply.response.clear_request_id();
  made.answer.set_response(reply.response.SerializeAsString());
  made.answer.set_builder(name_);
  if (reply.file.valid()) {
    ASSIGN_OR_RETURN(const MappedFile mapped,
                     MappedFile::Map(reply.file.get()));
    made.answer.set_digest(Sha256Hex(mapped.bytes()));
    made.answer.set_file_bytes(static_cast<int64_t>(mapped.bytes().size()));
    made.file = std::make_shared<const UniqueFd>(std::move(reply.file));
  }
  if (made.answer.file_bytes() > kMaxBlobBytes) {
    return absl::OutOfRangeError(
        absl::StrCat("the module has ", made.answer.file_bytes(),
                     " bytes, at most ", kMaxBlobBytes, " are passed on"));
  }
  SealAnswer(key_, order.request(), made.answer);
  // A build that ran out of time or memory may fare better the next time.
  made.lasting = !reply.response.has_failure() ||
                 reply.response.failure().outcome() == v1::OUTCOME_REFUSED;
  return made;
}

void OrderBuilder::Carry(const Order& ordered, Slot& slot) {
  const v1::BuildOrder& order = ordered.order;
  v1::AgentMessage message;
  v1::BuildAnswer& answer = *message.mutable_build_answer();
  bool known = false;
  {
    std::lock_guard lock(mutex_);
    const Kept* kept = FindKept(Sha256Hex(order.request()), "");
    known = kept != nullptr;
    if (known) answer = kept->answer;
  }
  if (!known) {
    absl::StatusOr<Kept> made =
        Build(order, slot, [&] { return !Wanted(ordered); });
    if (absl::IsCancelled(made.status())) return;
    if (!made.ok()) {
      return Answer(ordered, Declined(order.order_id(),
                                      std::string(made.status().message())));
    }
    answer = made->answer;
    if (made->lasting) Keep(*std::move(made));
  }
  answer.set_order_id(order.order_id());
  Answer(ordered, std::move(message));
}

void OrderBuilder::Answer(const Order& order, v1::AgentMessage message) {
  if (Wanted(order)) send_(std::move(message));
}

v1::AgentMessage OrderBuilder::Declined(const std::string& order_id,
                                        const std::string& why) {
  LOG(kWarning) << "order " << order_id << " of a board is declined: " << why;
  v1::AgentMessage message;
  message.mutable_build_answer()->set_order_id(order_id);
  message.mutable_build_answer()->set_unavailable(why);
  return message;
}

void OrderBuilder::SendChunk(const v1::BlobAsk& ask) {
  v1::AgentMessage message;
  v1::BlobChunk& chunk = *message.mutable_blob_chunk();
  chunk.set_order_id(ask.order_id());
  chunk.set_digest(ask.digest());
  chunk.set_offset(ask.offset());
  std::shared_ptr<const UniqueFd> file;
  {
    std::lock_guard lock(mutex_);
    const Kept* kept =
        ask.digest().empty() ? nullptr : FindKept("", ask.digest());
    if (kept != nullptr) file = kept->file;
  }
  const absl::StatusOr<MappedFile> mapped =
      file == nullptr ? absl::NotFoundError("the module is not kept any more")
                      : MappedFile::Map(file->get());
  if (!mapped.ok()) {
    chunk.set_unavailable(std::string(mapped.status().message()));
  } else if (ask.offset() < 0 ||
             ask.offset() >= static_cast<int64_t>(mapped->bytes().size())) {
    chunk.set_unavailable(
        absl::StrCat("the module has no byte ", ask.offset()));
  } else {
    chunk.set_data(std::string(mapped->bytes().substr(
        static_cast<size_t>(ask.offset()), kBlobChunkBytes)));
  }
  send_(std::move(message));
}

}  // namespace regatta
