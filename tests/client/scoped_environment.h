// An environment variable for the length of a test.
#ifndef REGATTA_TESTS_CLIENT_SCOPED_ENVIRONMENT_H_
#define REGATTA_TESTS_CLIENT_SCOPED_ENVIRONMENT_H_

#include <cstdlib>
#include <optional>
#include <string>

namespace regatta::testing {

class ScopedEnvironment {
 public:
  // Null: not set.
  ScopedEnvironment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    Set(value);
  }
  ~ScopedEnvironment() { Set(old_ ? old_->c_str() : nullptr); }
  ScopedEnvironment(const ScopedEnvironment&) = delete;

 private:
  void Set(const char* value) {
    if (value == nullptr) {
      unsetenv(name_);
    } else {
      setenv(name_, value, 1);
    }
  }

  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_CLIENT_SCOPED_ENVIRONMENT_H_
