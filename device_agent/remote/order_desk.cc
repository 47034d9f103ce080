#include "device_agent/remote/order_desk.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/memory_file.h"
#include "base/status_macros.h"
#include "device_agent/remote/build_seal.h"
#include "device_agent/remote/builder_key.h"

namespace regatta {
namespace {

// How late a cancellation or a deadline may be noticed.
constexpr auto kMoment = std::chrono::milliseconds(50);

const std::string& OrderIdOf(const v1::TrackerMessage& message) {
  return message.has_build_answer() ? message.build_answer().order_id()
                                    : message.blob_chunk().order_id();
}

// Another try may do better.
bool MayTryAgain(const absl::Status& status) {
  return absl::IsUnavailable(status);
}

}  // namespace

OrderDesk::OrderDesk(Options options, const Clock* clock, Send send)
    : options_(std::move(options)), clock_(clock), send_(std::move(send)) {}

void OrderDesk::OnSession(const SessionState& state) {
  std::lock_guard lock(mutex_);
  if (state.up != session_.up) ++session_number_;
  session_ = state;
  changed_.notify_all();
}

void OrderDesk::OnBuildMessage(const v1::TrackerMessage& message) {
  if (!message.has_build_answer() && !message.has_blob_chunk()) return;
  std::lock_guard lock(mutex_);
  const auto inbox = inboxes_.find(OrderIdOf(message));
  // Of an order that ended: late or sent twice.
  if (inbox == inboxes_.end()) return;
  inbox->second.push_back(message);
  changed_.notify_all();
}

int64_t OrderDesk::AwaitChange(int64_t seen, absl::Duration limit,
                               const Cancelled& cancelled) {
  const SteadyTime end = clock_->Steady() + limit;
  std::unique_lock lock(mutex_);
  while (clock_->Steady() < end && !cancelled()) {
    const int64_t now = session_.builders_change;
    if (session_.up && now != 0 && now != seen) return now;
    WaitABit(lock);
  }
  return seen;
}

int64_t OrderDesk::refused() const {
  std::lock_guard lock(mutex_);
  return refused_;
}

void OrderDesk::WaitABit(std::unique_lock<std::mutex>& lock) {
  changed_.wait_for(lock, kMoment);
}

absl::Status OrderDesk::Refuse(const absl::Status& why) {
  std::lock_guard lock(mutex_);
  ++refused_;
  LOG(kError) << "refused a builder's answer (" << refused_
              << " so far): " << why.message();
  return why;
}

void OrderDesk::NoteWait(const std::string& why) {
  std::lock_guard lock(mutex_);
  if (why == noted_wait_) return;
  noted_wait_ = why;
  if (!why.empty()) LOG(kWarning) << "still waiting for a builder: " << why;
}

void OrderDesk::SendEnd(const std::string& order_id) {
  v1::AgentMessage message;
  message.mutable_build_end()->set_order_id(order_id);
  send_(std::move(message));
}

absl::Status OrderDesk::AwaitSession(const std::string& why, Try& current) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (*current.cancelled && (*current.cancelled)()) {
      return absl::CancelledError("cancelled while it waited for a builder");
    }
    if (clock_->Steady() >= current.deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "waited ", absl::FormatDuration(options_.limit), " for a builder: ",
          why.empty() ? "no connection to the tracker" : why));
    }
    if (session_.up && !session_.relays_builds) {
      return absl::FailedPreconditionError(
          "the tracker does not pass on modules of builders; install the same "
          "release there");
    }
    if (session_.up) {
      current.session = session_number_;
      return absl::OkStatus();
    }
    WaitABit(lock);
  }
}

absl::StatusOr<v1::TrackerMessage> OrderDesk::Receive(const Try& current,
                                                      SteadyTime until) {
  std::unique_lock lock(mutex_);
  Inbox& inbox = inboxes_.at(current.id);
  for (;;) {
    if (!inbox.empty()) {
      v1::TrackerMessage message = std::move(inbox.front());
      inbox.pop_front();
      return message;
    }
    if (*current.cancelled && (*current.cancelled)()) {
      return absl::CancelledError("cancelled while it waited for a builder");
    }
    if (session_number_ != current.session) {
      return absl::UnavailableError("the connection to the tracker was lost");
    }
    if (clock_->Steady() >= until) {
      return absl::UnavailableError("the builder did not answer in time");
    }
    WaitABit(lock);
  }
}

absl::StatusOr<std::string> OrderDesk::FetchChunk(const v1::BuildAnswer& answer,
                                                  int64_t offset,
                                                  const Try& current) {
  v1::AgentMessage ask;
  ask.mutable_blob_ask()->set_order_id(current.id);
  ask.mutable_blob_ask()->set_digest(answer.digest());
  ask.mutable_blob_ask()->set_offset(offset);
  send_(std::move(ask));
  const SteadyTime until =
      std::min(current.deadline, clock_->Steady() + options_.chunk_limit);
  for (;;) {
    ASSIGN_OR_RETURN(const v1::TrackerMessage message, Receive(current, until));
    if (message.has_build_answer()) {
      // The answer again, or: its builder was lost.
      if (message.build_answer().unavailable().empty()) continue;
      return absl::UnavailableError(message.build_answer().unavailable());
    }
    const v1::BlobChunk& chunk = message.blob_chunk();
    if (chunk.digest() != answer.digest() || chunk.offset() != offset) continue;
    if (!chunk.unavailable().empty()) {
      return absl::UnavailableError(chunk.unavailable());
    }
    const int64_t due = std::min(kBlobChunkBytes, answer.file_bytes() - offset);
    if (static_cast<int64_t>(chunk.data().size()) != due) {
      return Refuse(absl::DataLossError(
          absl::StrCat("a part of builder ", answer.builder(), "'s module has ",
                       chunk.data().size(), " bytes instead of ", due)));
    }
    return chunk.data();
  }
}

absl::StatusOr<UniqueFd> OrderDesk::Fetch(const v1::BuildAnswer& answer,
                                          const Try& current,
                                          Partial* partial) {
  // Bytes under a digest are the same from every builder; the whole is checked
  // in the end.
  if (partial->digest != answer.digest() ||
      static_cast<int64_t>(partial->bytes.size()) > answer.file_bytes()) {
    *partial = {answer.digest(), ""};
  }
  std::string& bytes = partial->bytes;
  while (static_cast<int64_t>(bytes.size()) < answer.file_bytes()) {
    ASSIGN_OR_RETURN(
        const std::string chunk,
        FetchChunk(answer, static_cast<int64_t>(bytes.size()), current));
    bytes += chunk;
  }
  if (const std::string digest = Sha256Hex(bytes); digest != answer.digest()) {
    return Refuse(absl::DataLossError(
        absl::StrCat("the module from builder ", answer.builder(),
                     " has digest ", digest, ", it signed ", answer.digest())));
  }
  absl::StatusOr<UniqueFd> file = SealedMemoryFile("module", bytes);
  // The board's lack of memory is nobody else's doing.
  if (!file.ok()) return absl::InternalError(file.status().message());
  return file;
}

absl::StatusOr<OrderDesk::Delivery> OrderDesk::TryOnce(
    const v1::BuildOrder& order, const Try& current, Partial* partial) {
  v1::AgentMessage message;
  *message.mutable_build_order() = order;
  message.mutable_build_order()->set_order_id(current.id);
  message.mutable_build_order()->set_limit_ms(std::max<int64_t>(
      1, absl::ToInt64Milliseconds(current.deadline - clock_->Steady())));
  send_(std::move(message));
  v1::BuildAnswer answer;
  do {
    ASSIGN_OR_RETURN(v1::TrackerMessage received,
                     Receive(current, current.deadline));
    answer = std::move(*received.mutable_build_answer());
  } while (answer.order_id().empty());
  if (!answer.unavailable().empty()) {
    return absl::UnavailableError(answer.unavailable());
  }
  if (const absl::Status status =
          CheckSeal(options_.trusted, order.request(), answer);
      !status.ok()) {
    return Refuse(status);
  }
  Delivery delivery;
  if (!delivery.response.ParseFromString(answer.response())) {
    return Refuse(absl::DataLossError(absl::StrCat("builder ", answer.builder(),
                                                   " answered with no message "
                                                   "of build.proto")));
  }
  delivery.builder =
      absl::StrCat(answer.builder(), " ", KeyName(answer.public_key()));
  if (!answer.digest().empty()) {
    ASSIGN_OR_RETURN(delivery.file, Fetch(answer, current, partial));
  }
  return delivery;
}

absl::StatusOr<OrderDesk::Delivery> OrderDesk::Order(
    v1::BuildOrder order, const Cancelled& cancelled) {
  Try current{"", clock_->Steady() + options_.limit, &cancelled, 0};
  std::string why;
  Partial partial;
  for (;;) {
    RETURN_IF_ERROR(AwaitSession(why, current));
    {
      std::lock_guard lock(mutex_);
      current.id = absl::StrCat(++last_order_);
      inboxes_[current.id];
    }
    absl::StatusOr<Delivery> delivery = TryOnce(order, current, &partial);
    SendEnd(current.id);
    {
      std::lock_guard lock(mutex_);
      inboxes_.erase(current.id);
    }
    if (delivery.ok()) NoteWait("");
    if (delivery.ok() || !MayTryAgain(delivery.status())) return delivery;
    why = std::string(delivery.status().message());
    NoteWait(why);
    const SteadyTime again = clock_->Steady() + options_.retry;
    std::unique_lock lock(mutex_);
    while (clock_->Steady() < std::min(again, current.deadline) &&
           !(cancelled && cancelled())) {
      WaitABit(lock);
    }
  }
}

}  // namespace regatta
