#include "proto/security/audit_log.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/listening_socket.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/write_all.h"

namespace regatta {
namespace {

// Of what a line quotes: names and reasons from outside.
constexpr size_t kMaxText = 300;
constexpr int64_t kMaxReadBytes = int64_t{8} << 20;

// Names are ASCII; other bytes may be no text at all, which JSON cannot hold.
std::string Short(const std::string& text) {
  std::string shown = text.substr(0, kMaxText);
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return shown;
}

absl::StatusOr<UniqueFd> OpenForAppend(const std::string& path) {
  UniqueFd fd(
      open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (fd.valid()) return fd;
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot append to the audit ", path, ": ", std::strerror(errno)));
}

// PATH, and the files before it: PATH.1, PATH.2 ...
std::string OldPath(const std::string& path, int i) {
  return i == 0 ? path : absl::StrCat(path, ".", i);
}

// Of what is alike. A peer has another port each time.
std::string Key(const v1::AuditEntry& entry) {
  return absl::StrCat(entry.who(), "\n", ToAbsl(PeerAddress(entry.from())),
                      "\n", entry.what(), "\n", entry.result());
}

int64_t BytesOf(const UniqueFd& fd) {
  struct stat file = {};
  fstat(fd.get(), &file);
  return file.st_size;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(
    const std::string& path, const std::string& daemon, const Clock& clock,
    const AuditLimits& limits) {
  auto fd = OpenForAppend(path);
  if (!fd.ok()) return fd.status();
  const int64_t bytes = BytesOf(*fd);
  char last = '\n';
  // What a crash cut short must not swallow the next line.
  if (bytes > 0 && pread(fd->get(), &last, 1, bytes - 1) == 1 && last != '\n') {
    WriteAll(fd->get(), "\n");
  }
  std::unique_ptr<AuditLog> log(
      new AuditLog(path, daemon, clock, limits, *std::move(fd), bytes));
  log->minute_ = clock.Steady();
  return log;
}

std::unique_ptr<AuditLog> AuditLog::Nowhere(const Clock& clock) {
  return std::unique_ptr<AuditLog>(
      new AuditLog("", "", clock, {}, UniqueFd(), 0));
}

AuditLog::~AuditLog() {
  std::lock_guard lock(mutex_);
  EndMinute();
  if (unsynced_) fdatasync(fd_.get());
}

v1::AuditEntry AuditLog::Entry(const std::string& who, const std::string& from,
                               const std::string& what,
                               const std::string& result) const {
  v1::AuditEntry entry;
  entry.set_at_unix_ms(absl::ToUnixMillis(clock_.Wall()));
  entry.set_daemon(daemon_);
  entry.set_who(Short(who));
  entry.set_from(Short(from));
  entry.set_what(Short(what));
  entry.set_result(Short(result));
  entry.set_count(1);
  return entry;
}

void AuditLog::BeginMinute() {
  if (clock_.Steady() - minute_ >= absl::Minutes(1)) EndMinute();
}

bool AuditLog::CountAlike(const std::string& key) {
  const auto known = alike_.find(key);
  if (known == alike_.end()) return false;
  ++known->second.more;
  return true;
}

void AuditLog::Did(const std::string& who, const std::string& from,
                   const std::string& what, const std::string& result) {
  const v1::AuditEntry entry = Entry(who, from, what, result);
  const std::string key = Key(entry);
  const bool failed = result != "ok";
  std::lock_guard lock(mutex_);
  BeginMinute();
  if (failed && CountAlike(key)) return;
  Caller& caller = callers_[entry.who()];
  if (caller.lines >= limits_.done_per_minute) {
    ++caller.more;
    return;
  }
  ++caller.lines;
  if (failed) alike_[key].entry = entry;
  Write(entry);
}

void AuditLog::Refused(const std::string& who, const std::string& from,
                       const std::string& what, const std::string& why) {
  const v1::AuditEntry entry = Entry(who, from, what, "refused: " + why);
  const std::string key = Key(entry);
  std::lock_guard lock(mutex_);
  BeginMinute();
  if (CountAlike(key)) return;
  if (lines_ >= limits_.refusals_per_minute) {
    ++others_;
    return;
  }
  ++lines_;
  alike_[key].entry = entry;
  Write(entry);
  if (!fd_.valid()) return;
  LOG(kWarning) << LogEvent("auth_refused") << LogPeer(entry.who())
                << LogReason(entry.result()) << entry.who()
                << (entry.from().empty() ? "" : " at ") << entry.from() << ": "
                << entry.what() << " " << entry.result();
}

void AuditLog::EndMinute() {
  for (const auto& [key, alike] : alike_) {
    if (alike.more == 0) continue;
    v1::AuditEntry entry = alike.entry;
    entry.set_at_unix_ms(absl::ToUnixMillis(clock_.Wall()));
    entry.set_count(alike.more);
    Write(entry);
  }
  if (others_ > 0) {
    v1::AuditEntry entry =
        Entry("several", "", "several", "refused: too many to list one by one");
    entry.set_count(others_);
    Write(entry);
  }
  for (const auto& [who, caller] : callers_) {
    if (caller.more == 0) continue;
    v1::AuditEntry entry = Entry(who, "", "several",
                                 "done or failed: too many to list one by one");
    entry.set_count(caller.more);
    Write(entry);
  }
  alike_.clear();
  callers_.clear();
  others_ = 0;
  lines_ = 0;
  minute_ = clock_.Steady();
}

void AuditLog::Tick() {
  int fd = -1;
  {
    std::lock_guard lock(mutex_);
    BeginMinute();
    if (!unsynced_) return;
    unsynced_ = false;
    fd = fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0);
  }
  // Nobody waits for the disk.
  if (fd >= 0) fdatasync(fd);
  if (fd >= 0) close(fd);
}

void AuditLog::Write(const v1::AuditEntry& entry) {
  if (!fd_.valid()) return;
  std::string line;
  (void)google::protobuf::util::MessageToJsonString(entry, &line);
  line += '\n';
  if (bytes_ + static_cast<int64_t>(line.size()) > limits_.max_file_bytes) {
    Turn();
  }
  const int error = WriteAll(fd_.get(), line);
  if (error != 0 && !failing_) {
    LOG(kError) << "cannot append to the audit " << path_ << ": "
                << std::strerror(error);
  }
  failing_ = error != 0;
  bytes_ = BytesOf(fd_);
  unsynced_ = true;
}

void AuditLog::Turn() {
  // Where no new file can be made the old one goes on, beyond its size: what a
  // minute may add is bounded, and nothing older is lost for it.
  if (clock_.Steady() < turn_not_before_) return;
  const std::string next = path_ + ".next";
  unlink(next.c_str());
  auto fresh = OpenForAppend(next);
  if (!fresh.ok()) {
    LOG(kError) << fresh.status().message();
    turn_not_before_ = clock_.Steady() + absl::Minutes(1);
    return;
  }
  for (int i = limits_.old_files; i >= 1; --i) {
    std::rename(OldPath(path_, i - 1).c_str(), OldPath(path_, i).c_str());
  }
  std::rename(next.c_str(), path_.c_str());
  fd_ = *std::move(fresh);
  bytes_ = BytesOf(fd_);
}

absl::StatusOr<std::vector<std::string>> AuditLog::NewestBytes(
    size_t limit) const {
  std::vector<std::string> files;
  int64_t left = kMaxReadBytes;
  size_t lines = 0;
  std::lock_guard lock(mutex_);
  for (int i = 0; fd_.valid() && i <= limits_.old_files; ++i) {
    if (lines >= limit || left <= 0) break;
    UniqueFd old;
    if (i > 0) {
      old.Reset(open(OldPath(path_, i).c_str(), O_RDONLY | O_CLOEXEC));
      if (!old.valid()) break;  // it never turned so often
    }
    const UniqueFd& fd = i == 0 ? fd_ : old;
    const int64_t size = BytesOf(fd);
    const int64_t begin = std::max<int64_t>(0, size - left);
    std::string bytes(static_cast<size_t>(size - begin), '\0');
    const ssize_t got = pread(fd.get(), bytes.data(), bytes.size(), begin);
    if (got < 0) {
      return absl::UnavailableError(absl::StrCat("cannot read the audit ",
                                                 OldPath(path_, i), ": ",
                                                 std::strerror(errno)));
    }
    bytes.resize(static_cast<size_t>(got));
    if (begin > 0) bytes.erase(0, bytes.find('\n') + 1);
    left -= size;
    lines += static_cast<size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
    files.push_back(std::move(bytes));
  }
  return files;
}

absl::StatusOr<std::vector<v1::AuditEntry>> AuditLog::Newest(
    size_t limit) const {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, NewestBytes(limit));
  std::vector<v1::AuditEntry> entries;  // newest first
  for (const std::string& bytes : files) {
    size_t end = bytes.size();
    while (end > 0 && entries.size() < limit) {
      size_t begin = bytes.rfind('\n', end - 1);
      if (begin == end - 1) {  // the newline of the line before
        --end;
        continue;
      }
      begin = begin == bytes.npos ? 0 : begin + 1;
      v1::AuditEntry entry;
      if (google::protobuf::util::JsonStringToMessage(
              bytes.substr(begin, end - begin), &entry)
              .ok()) {
        entries.push_back(std::move(entry));
      }
      end = begin;
    }
  }
  std::reverse(entries.begin(), entries.end());
  return entries;
}

}  // namespace regatta
