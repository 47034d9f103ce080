// What an authority has done, in a file that is only appended to: one line of
// JSON for each certificate issued or revoked and each token made, by whom and
// when. Holds in memory what the file says.
//
// Several processes may append, one at a time (Authority's lock). A last line
// without its newline is a write that a crash cut short; it was never promised
// and is cut off by the next CatchUp.
//
// Not thread-safe.
#ifndef REGATTA_BASE_CERTS_AUTHORITY_LOG_H_
#define REGATTA_BASE_CERTS_AUTHORITY_LOG_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/certs/identity.h"

namespace regatta {

// Whom a token lets in: a role, and one name, or any name of its own choice
// that nobody has had. `device_class` as Identity's.
struct TokenScope {
  Role role = Role::kAgent;
  std::string name;  // "": any
  std::string device_class;
};

class AuthorityLog {
 public:
  struct Entry {
    std::string serial;
    std::string uri;
    absl::Time issued;
    absl::Time not_before;
    absl::Time not_after;
    std::string parent;   // the serial that it was renewed from; "": of none
    std::string revoked;  // why; "": it is not
    // Now, or from not_before on: its name is taken.
    bool Counts(absl::Time now) const {
      return revoked.empty() && not_after > now;
    }
  };
  struct Token {
    TokenScope scope;
    absl::Time expires;
    bool used = false;
  };

  explicit AuthorityLog(std::string path) : path_(std::move(path)) {}

  // Takes in what was appended since the last call, or all of a file that was
  // put in its place. DataLoss: it has become shorter, or where it is damaged.
  absl::Status CatchUp();
  // Durable when it returns OK, and taken in. `lines`: each with its newline.
  absl::Status Append(const std::string& lines);

  // Oldest first.
  const std::vector<Entry>& entries() const { return entries_; }
  // nullptr: not known.
  const Entry* Find(const std::string& serial) const;
  const Token* FindToken(const std::string& id) const;
  // Of ROLE/NAME, as RoleAndName gives it, oldest first.
  std::vector<const Entry*> Of(const std::string& role_and_name) const;
  // The names of all others that begin with `role_and_name`.
  std::vector<std::string> NamesBeginning(
      const std::string& role_and_name) const;
  // What was renewed from this certificate, and from that, and so on.
  std::vector<const Entry*> Descendants(const std::string& serial) const;
  // Names that begin with `prefix` whose newest certificate is revoked, without
  // the prefix, and why.
  std::map<std::string, std::string> RevokedNames(
      std::string_view prefix) const;
  // Lines that revoked something, ever.
  int64_t revocations() const { return revocations_; }

 private:
  absl::Status TakeLine(std::string_view text);
  void Forget();

  const std::string path_;
  dev_t device_ = 0;  // of the file that was read
  ino_t inode_ = 0;
  int64_t read_ = 0;  // bytes of it taken in
  std::vector<Entry> entries_;
  std::map<std::string, size_t> by_serial_;
  std::map<std::string, std::vector<size_t>> by_name_;
  std::map<std::string, std::vector<size_t>> by_parent_;
  std::map<std::string, Token> tokens_;  // by id
  int64_t revocations_ = 0;
};

// "agent/board1".
std::string RoleAndName(const Identity& identity);

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_AUTHORITY_LOG_H_
