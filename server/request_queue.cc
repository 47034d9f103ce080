#include "server/request_queue.h"

#include <utility>

namespace regatta {

template <typename Has, typename Count>
v1::DispatchRequest& RequestQueue::PlaceFor(size_t bytes, int most,
                                            const Has& has,
                                            const Count& count) {
  if (waiting_.empty() || !has(waiting_.back().request) ||
      count(waiting_.back().request) >= most ||
      waiting_.back().bytes + bytes > kMostBytes) {
    waiting_.emplace_back();
  }
  waiting_.back().bytes += bytes;
  return waiting_.back().request;
}

void RequestQueue::Push(v1::DispatchRequest request) {
  if (request.has_submit()) {
    for (v1::Work& work : *request.mutable_submit()->mutable_work()) {
      v1::DispatchRequest& place = PlaceFor(
          work.ByteSizeLong(), kMostWorks,
          [](const auto& last) { return last.has_submit(); },
          [](const auto& last) { return last.submit().work_size(); });
      *place.mutable_submit()->add_work() = std::move(work);
    }
  } else if (request.has_commit_ack()) {
    for (v1::TrialAck& ack : *request.mutable_commit_ack()->mutable_acks()) {
      v1::DispatchRequest& place = PlaceFor(
          ack.ByteSizeLong(), kMostAcks,
          [](const auto& last) { return last.has_commit_ack(); },
          [](const auto& last) { return last.commit_ack().acks_size(); });
      *place.mutable_commit_ack()->add_acks() = std::move(ack);
    }
  } else {
    waiting_.push_back({std::move(request)});
  }
}

v1::DispatchRequest RequestQueue::Pop() {
  v1::DispatchRequest request = std::move(waiting_.front().request);
  waiting_.pop_front();
  return request;
}

}  // namespace regatta
