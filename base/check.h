// CHECK: a broken invariant of our own code ends the process with the place and
// a message. Never used for requests, files, messages or candidates: those get
// an absl::Status or an outcome.
//
//   CHECK(lanes > 0) << "lanes " << lanes;
#ifndef REGATTA_BASE_CHECK_H_
#define REGATTA_BASE_CHECK_H_

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace regatta::internal {

// Collects the message and aborts when it goes out of scope.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition) {
    stream_ << file << ":" << line << ": check failed: " << condition << " ";
  }
  [[noreturn]] ~CheckFailure() {
    std::cerr << stream_.str() << std::endl;
    std::abort();
  }
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

}  // namespace regatta::internal

#define CHECK(condition)  \
  if (condition) [[likely]] { \
  } else                  \
    ::regatta::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

#endif  // REGATTA_BASE_CHECK_H_
