#include "base/certs/authority_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/certs/issue.h"
#include "base/json_reason.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/system_error.h"
#include "base/unique_fd.h"
#include "base/whole_number.h"
#include "base/write_all.h"

namespace regatta {
namespace {

using json = nlohmann::json;

constexpr size_t kReadBytes = size_t{1} << 20;
// A line has a few hundred bytes.
constexpr size_t kMaxLineBytes = size_t{1} << 20;

}  // namespace

std::string RoleAndName(const Identity& identity) {
  return absl::StrCat(ToAbsl(RoleName(identity.role)), "/", identity.name);
}

absl::Status AuthorityLog::CatchUp() {
  const UniqueFd fd(open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return SystemError(path_, "open", errno);
  struct stat file = {};
  if (fstat(fd.get(), &file) != 0) return SystemError(path_, "read", errno);
  if (file.st_dev != device_ || file.st_ino != inode_) {
    Forget();
    device_ = file.st_dev;
    inode_ = file.st_ino;
  }
  if (file.st_size < read_) {
    return absl::DataLossError(absl::StrCat(path_, " has become shorter"));
  }
  std::string pending;  // from read_ on, not taken in yet
  std::string chunk(kReadBytes, '\0');
  while (true) {
    const ssize_t got = pread(fd.get(), chunk.data(), chunk.size(),
                              read_ + static_cast<off_t>(pending.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(path_, "read", errno);
    if (got == 0) break;
    pending.append(chunk, 0, static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end; (end = pending.find('\n', begin)) != pending.npos;) {
      const std::string_view line(pending.data() + begin, end - begin);
      if (absl::Status taken = TakeLine(line); !taken.ok()) {
        return absl::DataLossError(
            absl::StrCat(path_, ": byte ", read_, ": ", taken.message()));
      }
      read_ += static_cast<int64_t>(end + 1 - begin);
      begin = end + 1;
    }
    pending.erase(0, begin);
    if (pending.size() > kMaxLineBytes) {
      return absl::DataLossError(absl::StrCat(path_, ": byte ", read_,
                                              ": a line of more than ",
                                              kMaxLineBytes, " bytes"));
    }
  }
  if (!pending.empty() && ftruncate(fd.get(), read_) != 0) {
    return SystemError(path_, "mend", errno);
  }
  return absl::OkStatus();
}

void AuthorityLog::Forget() {
  read_ = 0;
  entries_.clear();
  by_serial_.clear();
  by_name_.clear();
  by_parent_.clear();
  tokens_.clear();
  revocations_ = 0;
}

absl::Status AuthorityLog::TakeLine(std::string_view text) {
  try {
    const json line = json::parse(text);
    const std::string event = line.at("event");
    if (event == "issued") {
      Entry entry;
      entry.serial = line.at("serial");
      entry.uri = line.at("uri");
      entry.not_after =
          absl::FromUnixSeconds(WholeNumber(line.at("not_after")));
      entry.parent = line.value("parent", "");
      const std::string at = line.at("at");
      std::string bad;
      if (!absl::ParseTime(absl::RFC3339_sec, at, &entry.issued, &bad)) {
        return absl::DataLossError(absl::StrCat("at: ", bad));
      }
      // Lines of older releases do not say it.
      entry.not_before =
          line.contains("not_before")
              ? absl::FromUnixSeconds(WholeNumber(line["not_before"]))
              : entry.issued - kClockSlack;
      by_serial_[entry.serial] = entries_.size();
      if (const auto identity = ParseIdentityUri(entry.uri); identity.ok()) {
        by_name_[RoleAndName(*identity)].push_back(entries_.size());
      }
      if (!entry.parent.empty()) {
        by_parent_[entry.parent].push_back(entries_.size());
      }
      entries_.push_back(std::move(entry));
      if (line.contains("token")) {
        tokens_[line["token"].get<std::string>()].used = true;
      }
    } else if (event == "revoked") {
      const auto found = by_serial_.find(line.at("serial"));
      if (found != by_serial_.end()) {
        entries_[found->second].revoked = line.at("why");
      }
      ++revocations_;
    } else if (event == "token") {
      Token token;
      ASSIGN_OR_RETURN(token.scope.role,
                       ParseRole(line.at("role").get<std::string>()));
      token.scope.name = line.at("name");
      token.scope.device_class = line.at("class");
      token.expires = absl::FromUnixSeconds(WholeNumber(line.at("expires")));
      tokens_[line.at("id")] = token;
    }
    return absl::OkStatus();
  } catch (const json::exception& error) {
    return absl::DataLossError(ToAbsl(JsonReason(error.what())));
  }
}

absl::Status AuthorityLog::Append(const std::string& lines) {
  const UniqueFd fd(open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd.valid()) return SystemError(path_, "open", errno);
  int error = WriteAll(fd.get(), lines);
  if (error == 0 && fsync(fd.get()) != 0) error = errno;
  if (error != 0) return SystemError(path_, "write", error);
  return CatchUp();
}

const AuthorityLog::Entry* AuthorityLog::Find(const std::string& serial) const {
  const auto found = by_serial_.find(serial);
  return found == by_serial_.end() ? nullptr : &entries_[found->second];
}

const AuthorityLog::Token* AuthorityLog::FindToken(
    const std::string& id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

std::vector<const AuthorityLog::Entry*> AuthorityLog::Of(
    const std::string& role_and_name) const {
  std::vector<const Entry*> all;
  if (const auto found = by_name_.find(role_and_name);
      found != by_name_.end()) {
    for (const size_t at : found->second) all.push_back(&entries_[at]);
  }
  return all;
}

std::map<std::string, std::string> AuthorityLog::RevokedNames(
    std::string_view prefix) const {
  std::map<std::string, std::string> revoked;
  for (auto at = by_name_.lower_bound(std::string(prefix));
       at != by_name_.end() && at->first.starts_with(prefix); ++at) {
    const Entry& newest = entries_[at->second.back()];
    if (!newest.revoked.empty()) {
      revoked[at->first.substr(prefix.size())] = newest.revoked;
    }
  }
  return revoked;
}

std::vector<std::string> AuthorityLog::NamesBeginning(
    const std::string& role_and_name) const {
  std::vector<std::string> names;
  for (auto at = by_name_.lower_bound(role_and_name);
       at != by_name_.end() && at->first.starts_with(role_and_name); ++at) {
    if (at->first != role_and_name) names.push_back(at->first);
  }
  return names;
}

std::vector<const AuthorityLog::Entry*> AuthorityLog::Descendants(
    const std::string& serial) const {
  std::vector<const Entry*> found;
  std::set<size_t> seen;
  std::deque<std::string> from = {serial};
  while (!from.empty()) {
    const auto children = by_parent_.find(from.front());
    from.pop_front();
    if (children == by_parent_.end()) continue;
    for (const size_t at : children->second) {
      if (!seen.insert(at).second) continue;
      found.push_back(&entries_[at]);
      from.push_back(entries_[at].serial);
    }
  }
  return found;
}

}  // namespace regatta
