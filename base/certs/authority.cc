#include "base/certs/authority.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/certs/revocation_list.h"
#include "base/certs/tls_folder.h"
#include "base/json_reason.h"
#include "base/name_check.h"
#include "base/replace_file.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/write_all.h"

namespace regatta {
namespace {

using json = nlohmann::json;

constexpr size_t kMaxLogBytes = size_t{1} << 30;

std::string Text(std::string_view text) { return std::string(text); }

absl::Status System(const std::string& path, const char* what, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(error)));
}

// What every line of the log begins with.
json Line(const char* event, absl::Time now, const std::string& by) {
  return {{"event", event},
          {"at", absl::FormatTime(absl::RFC3339_sec, now, absl::UTCTimeZone())},
          {"by", by}};
}

std::string RoleAndName(const Identity& identity) {
  return absl::StrCat(ToAbsl(RoleName(identity.role)), "/", identity.name);
}

}  // namespace

// One change, alone among threads and processes.
class Authority::Locked {
 public:
  static absl::StatusOr<std::unique_ptr<Locked>> Enter(Authority& authority) {
    std::unique_ptr<Locked> locked(new Locked(authority.mutex_));
    const std::string path = authority.dir_ + "/lock";
    locked->fd_.Reset(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!locked->fd_.valid()) return System(path, "open", errno);
    while (flock(locked->fd_.get(), LOCK_EX) != 0) {
      if (errno != EINTR) return System(path, "lock", errno);
    }
    RETURN_IF_ERROR(authority.CatchUp());
    return locked;
  }

 private:
  explicit Locked(std::mutex& mutex) : lock_(mutex) {}
  std::lock_guard<std::mutex> lock_;
  UniqueFd fd_;
};

absl::Status Authority::Init(const std::string& dir, const std::string& lab,
                             absl::Time now) {
  RETURN_IF_ERROR(CheckName("lab", lab));
  // It is a common name, which has at most 64 characters.
  if (lab.size() > 64) {
    return absl::InvalidArgumentError("lab: more than 64 characters");
  }
  RETURN_IF_ERROR(MakeTlsFolder(dir));
  const std::string key_path = dir + "/ca.key";
  if (access(key_path.c_str(), F_OK) == 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is an authority in ", dir, " already"));
  }
  const PrivateKey key = PrivateKey::Generate();
  const Certificate certificate =
      MakeAuthorityCertificate(key, lab, now, kAuthorityLife);
  RETURN_IF_ERROR(ReplaceFile(dir + "/authority.jsonl", "", 0600));
  RETURN_IF_ERROR(ReplaceFile(
      dir + "/crl.pem",
      RevocationList::Make(certificate, key, {}, 1, now).Pem(), 0644));
  RETURN_IF_ERROR(ReplaceFile(dir + "/ca.pem", certificate.Pem(), 0644));
  // Last: with it the authority is there.
  return ReplaceFile(key_path, key.Pem(), 0600);
}

absl::StatusOr<std::unique_ptr<Authority>> Authority::Open(
    const std::string& dir) {
  const auto part = [&dir](const char* name) -> absl::StatusOr<std::string> {
    auto bytes = ReadSmallFile(absl::StrCat(dir, "/", name));
    if (bytes.ok()) return bytes;
    return absl::FailedPreconditionError(
        absl::StrCat(bytes.status().message(),
                     absl::IsNotFound(bytes.status())
                         ? "; `regatta certs init` makes an authority"
                         : ""));
  };
  ASSIGN_OR_RETURN(const std::string key_pem, part("ca.key"));
  ASSIGN_OR_RETURN(const std::string ca_pem, part("ca.pem"));
  auto key = PrivateKey::FromPem(key_pem);
  RETURN_IF_ERROR(Annotate(key.status(), dir + "/ca.key"));
  auto certificate = Certificate::FromPem(ca_pem);
  RETURN_IF_ERROR(Annotate(certificate.status(), dir + "/ca.pem"));
  if (!certificate->BelongsTo(*key)) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir, "/ca.key is not the key of ca.pem beside it"));
  }
  std::unique_ptr<Authority> authority(new Authority(dir, *certificate, *key));
  RETURN_IF_ERROR(Locked::Enter(*authority).status());
  return authority;
}

absl::Status Authority::CatchUp() {
  const std::string path = dir_ + "/authority.jsonl";
  ASSIGN_OR_RETURN(std::string bytes, ReadSmallFile(path, kMaxLogBytes));
  if (static_cast<int64_t>(bytes.size()) < read_) {
    return absl::DataLossError(absl::StrCat(path, " has become shorter"));
  }
  for (size_t at = static_cast<size_t>(read_); at < bytes.size();) {
    const size_t end = bytes.find('\n', at);
    if (end == bytes.npos) {
      if (truncate(path.c_str(), static_cast<off_t>(at)) != 0) {
        return System(path, "mend", errno);
      }
      break;
    }
    if (absl::Status taken = TakeLine(bytes.substr(at, end - at));
        !taken.ok()) {
      return absl::DataLossError(
          absl::StrCat(path, ": byte ", at, ": ", taken.message()));
    }
    at = end + 1;
    read_ = static_cast<int64_t>(at);
  }
  return absl::OkStatus();
}

absl::Status Authority::TakeLine(const std::string& text) {
  try {
    const json line = json::parse(text);
    const std::string event = line.at("event");
    if (event == "issued") {
      const std::string serial = line.at("serial");
      by_serial_[serial] = entries_.size();
      entries_.push_back(
          {serial, line.at("uri"),
           absl::FromUnixSeconds(line.at("not_after").get<int64_t>()), ""});
      if (line.contains("token")) {
        tokens_[line["token"].get<std::string>()].used = true;
      }
    } else if (event == "revoked") {
      const auto found = by_serial_.find(line.at("serial"));
      if (found != by_serial_.end()) {
        entries_[found->second].revoked = line.at("why");
      }
    } else if (event == "token") {
      Token token;
      ASSIGN_OR_RETURN(token.scope.role,
                       ParseRole(line.at("role").get<std::string>()));
      token.scope.name = line.at("name");
      token.scope.device_class = line.at("class");
      token.expires = absl::FromUnixSeconds(line.at("expires").get<int64_t>());
      tokens_[line.at("id")] = token;
    }
    return absl::OkStatus();
  } catch (const json::exception& error) {
    return absl::DataLossError(Text(JsonReason(error.what())));
  }
}

absl::Status Authority::Append(const std::string& line) {
  const std::string path = dir_ + "/authority.jsonl";
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd.valid()) return System(path, "open", errno);
  int error = WriteAll(fd.get(), line + "\n");
  if (error == 0 && fsync(fd.get()) != 0) error = errno;
  if (error != 0) return System(path, "write", error);
  return CatchUp();
}

absl::StatusOr<Authority::Issued> Authority::Sign(
    const Identity& identity, const PublicKey& key, absl::Time now,
    absl::Duration life, const std::string& by, const std::string& token) {
  RETURN_IF_ERROR(CheckIdentity(identity));
  const Certificate certificate =
      IssueCertificate(certificate_, key_, key, identity, now, life);
  json line = Line("issued", now, by);
  line["serial"] = certificate.Serial();
  line["uri"] = IdentityUri(identity);
  line["not_after"] = absl::ToUnixSeconds(certificate.NotAfter());
  if (!token.empty()) line["token"] = token;
  RETURN_IF_ERROR(Append(line.dump()));
  return Issued{certificate, certificate.Pem() + certificate_.Pem()};
}

absl::StatusOr<Authority::Issued> Authority::Issue(const Identity& identity,
                                                   const PublicKey& key,
                                                   absl::Time now,
                                                   absl::Duration life,
                                                   const std::string& by) {
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this));
  return Sign(identity, key, now, life, by, "");
}

absl::StatusOr<JoinToken> Authority::MakeToken(const Scope& scope,
                                               absl::Time now,
                                               absl::Duration life,
                                               const std::string& by) {
  RETURN_IF_ERROR(CheckIdentity({.lab = lab_,
                                 .role = scope.role,
                                 .name = scope.name.empty() ? "x" : scope.name,
                                 .device_class = scope.device_class}));
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this));
  const JoinToken token = JoinToken::Make(certificate_.Fingerprint());
  json line = Line("token", now, by);
  line["id"] = token.Id();
  line["role"] = Text(RoleName(scope.role));
  line["name"] = scope.name;
  line["class"] = scope.device_class;
  line["expires"] = absl::ToUnixSeconds(now + life);
  RETURN_IF_ERROR(Append(line.dump()));
  return token;
}

bool Authority::NameTaken(const std::string& uri_begin, absl::Time now) const {
  for (const Entry& entry : entries_) {
    if (entry.revoked.empty() && entry.not_after > now &&
        (entry.uri == uri_begin || entry.uri.starts_with(uri_begin + "?"))) {
      return true;
    }
  }
  return false;
}

absl::StatusOr<Authority::Issued> Authority::Join(const std::string& secret,
                                                  const std::string& name,
                                                  const PublicKey& key,
                                                  absl::Time now) {
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this));
  const std::string id = JoinToken{.secret = secret, .ca_fingerprint = ""}.Id();
  const auto found = tokens_.find(id);
  const auto refused = [](auto... why) {
    return absl::PermissionDeniedError(absl::StrCat(why...));
  };
  if (found == tokens_.end()) return refused("the token is not known here");
  const Token& token = found->second;
  const std::string label = absl::StrCat("the token ", id.substr(0, 8));
  if (token.used) return refused(label, " has been used");
  if (now > token.expires) {
    return refused(label, " was valid until ",
                   absl::FormatTime(absl::RFC3339_sec, token.expires,
                                    absl::UTCTimeZone()));
  }
  Identity identity{.lab = lab_,
                    .role = token.scope.role,
                    .name = name.empty() ? token.scope.name : name,
                    .device_class = token.scope.device_class};
  RETURN_IF_ERROR(CheckIdentity(identity));
  if (!token.scope.name.empty() && identity.name != token.scope.name) {
    return refused(label, " is for ", token.scope.name, ", not for ", name);
  }
  if (token.scope.name.empty()) {
    Identity any_class = identity;
    any_class.device_class.clear();
    if (NameTaken(IdentityUri(any_class), now)) {
      return refused(RoleAndName(identity),
                     " is somebody's name already; choose another, or make a "
                     "token for this name");
    }
  }
  return Sign(identity, key, now, kCertificateLife, "join", id);
}

absl::StatusOr<Authority::Issued> Authority::Renew(const Identity& identity,
                                                   const std::string& serial,
                                                   const PublicKey& key,
                                                   absl::Time now) {
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this));
  const auto found = by_serial_.find(serial);
  if (found != by_serial_.end() && !entries_[found->second].revoked.empty()) {
    return absl::PermissionDeniedError(
        absl::StrCat("certificate ", serial, " is revoked"));
  }
  return Sign(identity, key, now, kCertificateLife,
              "renewal by " + IdentityUri(identity), "");
}

absl::StatusOr<int> Authority::Revoke(std::string_view what,
                                      const std::string& why, absl::Time now,
                                      const std::string& by) {
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this));
  std::vector<std::string> serials;
  for (const Entry& entry : entries_) {
    const auto identity = ParseIdentityUri(entry.uri);
    const bool meant = entry.serial == what ||
                       (identity.ok() && RoleAndName(*identity) == Text(what));
    if (meant && entry.revoked.empty()) serials.push_back(entry.serial);
  }
  if (serials.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no certificate that is not revoked already has the serial or is of "
        "ROLE/NAME '",
        ToAbsl(what), "'; `regatta certs list` shows them"));
  }
  for (const std::string& serial : serials) {
    json line = Line("revoked", now, by);
    line["serial"] = serial;
    line["why"] = why.empty() ? "no reason given" : why;
    RETURN_IF_ERROR(Append(line.dump()));
  }
  RETURN_IF_ERROR(WriteRevocationList(now));
  return static_cast<int>(serials.size());
}

absl::Status Authority::WriteRevocationList(absl::Time now) {
  const std::string path = dir_ + "/crl.pem";
  int64_t number = 0;
  if (auto pem = ReadSmallFile(path, 64 << 20); pem.ok()) {
    if (auto list = RevocationList::FromPem(*pem); list.ok()) {
      number = list->Number();
    }
  }
  std::vector<std::string> serials;
  for (const Entry& entry : entries_) {
    // An expired one counts for nothing without the list.
    if (!entry.revoked.empty() && entry.not_after > now) {
      serials.push_back(entry.serial);
    }
  }
  return ReplaceFile(
      path,
      RevocationList::Make(certificate_, key_, serials, number + 1, now).Pem(),
      0644);
}

absl::StatusOr<std::vector<Authority::Entry>> Authority::List(absl::Time now) {
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this));
  std::vector<Entry> list;
  for (const Entry& entry : entries_) {
    if (entry.not_after > now) list.push_back(entry);
  }
  return list;
}

absl::StatusOr<std::string> Authority::Revocations() const {
  return ReadSmallFile(dir_ + "/crl.pem", 64 << 20);
}

}  // namespace regatta
