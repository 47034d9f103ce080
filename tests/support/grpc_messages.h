// The messages of plain-text gRPC calls, read off one direction of a
// connection. Only frames of data are looked at (RFC 9113, 4.1 and 6.1), and in
// them length-prefixed messages; compressed ones are handed over as they are.
//
// Not thread-safe.
#ifndef REGATTA_TESTS_SUPPORT_GRPC_MESSAGES_H_
#define REGATTA_TESTS_SUPPORT_GRPC_MESSAGES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace regatta::testing {

class GrpcMessages {
 public:
  using Found = std::function<void(std::string_view message)>;

  // Bytes in the order in which they come, from the first of the connection on.
  // `found` is called for each message that they complete.
  void Feed(std::string_view bytes, const Found& found);

 private:
  bool started_ = false;  // past the preface, where there is one
  std::string frames_;    // not yet a whole frame
  std::map<uint32_t, std::string> calls_;  // not yet a whole message
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SUPPORT_GRPC_MESSAGES_H_
