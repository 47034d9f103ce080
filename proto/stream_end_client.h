// How a client ends a stream that it has read.
#ifndef REGATTA_PROTO_STREAM_END_CLIENT_H_
#define REGATTA_PROTO_STREAM_END_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace regatta {

// Finish of a stream whose Read has said that nothing more comes. The status is
// there then, unless a message could not be parsed: gRPC ends the reading for
// that too, and Finish alone would wait for ever for what is not read. Such a
// call is cancelled once `patience` has passed: DATA_LOSS.
template <typename Reader>
grpc::Status FinishStream(
    Reader& reader, grpc::ClientContext& context,
    std::chrono::milliseconds patience = std::chrono::seconds(5)) {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false, cancelled = false;
  std::thread watch([&] {
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, patience, [&] { return ended; })) return;
    cancelled = true;
    context.TryCancel();
  });
  const grpc::Status status = reader.Finish();
  {
    std::lock_guard lock(mutex);
    ended = true;
  }
  changed.notify_all();
  watch.join();
  if (status.ok() || !cancelled) return status;
  return grpc::Status(grpc::StatusCode::DATA_LOSS,
                      "a message of the answer cannot be read: it is damaged, "
                      "or of another version");
}

}  // namespace regatta

#endif  // REGATTA_PROTO_STREAM_END_CLIENT_H_
