// What waits to be sent to the tracker, in messages that it takes.
//
// Units of work that wait together are sent together, and so are
// acknowledgements, up to a number of them and a number of bytes: the tracker
// ends the stream at a message of more than 8 MiB, and a server that attached
// anew would make the same one again. Whatever is of one kind is cut and joined
// here, at one place. A unit of work that is larger alone goes alone.
//
// Not thread-safe.
#ifndef REGATTA_SERVER_REQUEST_QUEUE_H_
#define REGATTA_SERVER_REQUEST_QUEUE_H_

#include <cstddef>
#include <deque>

#include "regatta/v1/dispatch_service.pb.h"

namespace regatta {

class RequestQueue {
 public:
  static constexpr int kMostWorks = 500;
  static constexpr int kMostAcks = 10'000;
  static constexpr size_t kMostBytes = size_t{2} << 20;  // of works or acks

  // In the order of these calls.
  void Push(v1::DispatchRequest request);
  bool empty() const { return waiting_.empty(); }
  // REQUIRES: !empty().
  v1::DispatchRequest Pop();
  void Clear() { waiting_.clear(); }

 private:
  struct Waiting {
    v1::DispatchRequest request;
    size_t bytes = 0;  // of its works or acks
  };
  // Where the next one of that kind and size goes. `count`: how many of the
  // kind a message has.
  template <typename Has, typename Count>
  v1::DispatchRequest& PlaceFor(size_t bytes, int most, const Has& has,
                                const Count& count);

  std::deque<Waiting> waiting_;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_REQUEST_QUEUE_H_
