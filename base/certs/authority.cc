#include "base/certs/authority.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/certs/revocation_list.h"
#include "base/certs/tls_folder.h"
#include "base/name_check.h"
#include "base/replace_file.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/system_error.h"

namespace regatta {
namespace {

using json = nlohmann::json;

constexpr size_t kMaxListBytes = 64 << 20;

std::string Text(std::string_view text) { return std::string(text); }

// What every line of the log begins with.
json Line(const char* event, absl::Time now, const std::string& by) {
  return {{"event", event},
          {"at", absl::FormatTime(absl::RFC3339_sec, now, absl::UTCTimeZone())},
          {"by", by}};
}

// Differs when another file lies there.
std::string FileStamp(const std::string& path) {
  struct stat file = {};
  if (stat(path.c_str(), &file) != 0) return "";
  return absl::StrCat(file.st_ino, " ", file.st_size, " ", file.st_mtim.tv_sec,
                      ".", file.st_mtim.tv_nsec);
}

}  // namespace

// One change, alone among threads and processes.
class Authority::Locked {
 public:
  static absl::StatusOr<std::unique_ptr<Locked>> Enter(Authority& authority,
                                                       absl::Time now) {
    std::unique_ptr<Locked> locked(new Locked(authority.mutex_));
    const std::string path = authority.dir_ + "/lock";
    locked->fd_.Reset(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!locked->fd_.valid()) return SystemError(path, "open", errno);
    while (flock(locked->fd_.get(), LOCK_EX) != 0) {
      if (errno != EINTR) return SystemError(path, "lock", errno);
    }
    RETURN_IF_ERROR(authority.log_.CatchUp());
    RETURN_IF_ERROR(authority.MendRevocationList(now));
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
    const std::string& dir, absl::Time now) {
  const std::string ca_path = dir + "/ca.pem";
  const auto missing = [](const absl::Status& status) {
    return absl::FailedPreconditionError(absl::StrCat(
        status.message(), absl::IsNotFound(status)
                              ? "; `regatta certs init` makes an authority"
                              : ""));
  };
  const auto key = ReadPrivateKey(dir + "/ca.key");
  if (!key.ok()) return missing(key.status());
  const auto ca_pem = ReadSmallFile(ca_path);
  if (!ca_pem.ok()) return missing(ca_pem.status());
  auto certificate = Certificate::FromPem(*ca_pem);
  RETURN_IF_ERROR(Annotate(certificate.status(), ca_path));
  if (!certificate->BelongsTo(*key)) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir, "/ca.key is not the key of ca.pem beside it"));
  }
  std::unique_ptr<Authority> authority(new Authority(dir, *certificate, *key));
  RETURN_IF_ERROR(Locked::Enter(*authority, now).status());
  return authority;
}

absl::StatusOr<Authority::Issued> Authority::Sign(const Identity& identity,
                                                  const PublicKey& key,
                                                  absl::Time now,
                                                  absl::Duration life,
                                                  const Origin& origin) {
  RETURN_IF_ERROR(CheckIdentity(identity));
  const Certificate certificate =
      IssueCertificate(certificate_, key_, key, identity, now, life);
  json line = Line("issued", now, origin.by);
  line["serial"] = certificate.Serial();
  line["uri"] = IdentityUri(identity);
  line["not_before"] = absl::ToUnixSeconds(certificate.NotBefore());
  line["not_after"] = absl::ToUnixSeconds(certificate.NotAfter());
  if (!origin.token.empty()) line["token"] = origin.token;
  if (!origin.parent.empty()) line["parent"] = origin.parent;
  RETURN_IF_ERROR(log_.Append(line.dump() + "\n"));
  return Issued{certificate, certificate.Pem() + certificate_.Pem()};
}

absl::Status Authority::CheckClash(const Identity& identity, absl::Time now,
                                   bool ever) const {
  if (identity.role != Role::kAgent) return absl::OkStatus();
  const std::string own = RoleAndName(identity);
  std::vector<std::string> others = log_.NamesBeginning(own + "-");
  for (size_t at = own.find('-'); at != own.npos; at = own.find('-', at + 1)) {
    others.push_back(own.substr(0, at));
  }
  for (const std::string& other : others) {
    for (const Entry* entry : log_.Of(other)) {
      if (!ever && !entry->Counts(now)) continue;
      const bool longer = other.size() > own.size();
      return absl::FailedPreconditionError(absl::StrCat(
          own, ": there is ", other, ", and the devices of ",
          longer ? own : other, " may be called as ", longer ? other : own,
          "'s are; choose a name that does not begin with the other and '-'"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Authority::Issued> Authority::Issue(const Identity& identity,
                                                   const PublicKey& key,
                                                   absl::Time now,
                                                   absl::Duration life,
                                                   const std::string& by) {
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this, now));
  RETURN_IF_ERROR(CheckClash(identity, now, /*ever=*/false));
  return Sign(identity, key, now, life, {.by = by});
}

absl::StatusOr<JoinToken> Authority::MakeToken(const Scope& scope,
                                               absl::Time now,
                                               absl::Duration life,
                                               const std::string& by) {
  const Identity identity{.lab = lab_,
                          .role = scope.role,
                          .name = scope.name.empty() ? "x" : scope.name,
                          .device_class = scope.device_class};
  RETURN_IF_ERROR(CheckIdentity(identity));
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this, now));
  if (!scope.name.empty()) {
    RETURN_IF_ERROR(CheckClash(identity, now, /*ever=*/false));
  }
  const JoinToken token = JoinToken::Make(certificate_.Fingerprint());
  json line = Line("token", now, by);
  line["id"] = token.Id();
  line["role"] = Text(RoleName(scope.role));
  line["name"] = scope.name;
  line["class"] = scope.device_class;
  line["expires"] = absl::ToUnixSeconds(now + life);
  RETURN_IF_ERROR(log_.Append(line.dump() + "\n"));
  return token;
}

absl::StatusOr<Authority::Issued> Authority::Join(const std::string& secret,
                                                  const std::string& name,
                                                  const PublicKey& key,
                                                  absl::Time now) {
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this, now));
  const std::string id = JoinToken{.secret = secret, .ca_fingerprint = ""}.Id();
  const AuthorityLog::Token* token = log_.FindToken(id);
  const auto refused = [](auto... why) {
    return absl::PermissionDeniedError(absl::StrCat(why...));
  };
  if (token == nullptr) return refused("the token is not known here");
  const std::string label = absl::StrCat("the token ", id.substr(0, 8));
  if (token->used) return refused(label, " has been used");
  if (now > token->expires) {
    return refused(label, " was valid until ",
                   absl::FormatTime(absl::RFC3339_sec, token->expires,
                                    absl::UTCTimeZone()));
  }
  const bool any_name = token->scope.name.empty();
  const Identity identity{.lab = lab_,
                          .role = token->scope.role,
                          .name = name.empty() ? token->scope.name : name,
                          .device_class = token->scope.device_class};
  RETURN_IF_ERROR(CheckIdentity(identity));
  if (!any_name && identity.name != token->scope.name) {
    return refused(label, " is for ", token->scope.name, ", not for ", name);
  }
  // Whoever chooses a name must not come by what was somebody's: devices, jobs
  // and history stand under it.
  if (any_name && !log_.Of(RoleAndName(identity)).empty()) {
    return refused(RoleAndName(identity),
                   " is or was somebody's name already; choose another, or "
                   "make a token for this name");
  }
  if (absl::Status clash = CheckClash(identity, now, any_name); !clash.ok()) {
    return refused(clash.message());
  }
  return Sign(identity, key, now, kCertificateLife,
              {.by = "join", .token = id});
}

absl::StatusOr<Authority::Issued> Authority::Renew(const Certificate& have,
                                                   const PublicKey& key,
                                                   absl::Time now) {
  ASSIGN_OR_RETURN(const Identity identity, have.GetIdentity());
  const std::string serial = have.Serial();
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this, now));
  if (const Entry* entry = log_.Find(serial);
      entry != nullptr && !entry->revoked.empty()) {
    return absl::PermissionDeniedError(
        absl::StrCat("certificate ", serial, " is revoked"));
  }
  const absl::Duration span = have.NotAfter() - have.NotBefore();
  const absl::Time half = have.NotBefore() + span / 2;
  // Its owner's clock may be ahead.
  if (now < half - kClockSlack) {
    return absl::FailedPreconditionError(absl::StrCat(
        "certificate ", serial, " may be renewed from ",
        absl::FormatTime(absl::RFC3339_sec, half, absl::UTCTimeZone()),
        " on, when half of its life is over"));
  }
  for (const Entry* entry : log_.Of(RoleAndName(identity))) {
    if (!entry->parent.empty() && entry->issued > now - kRenewalPause) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a certificate of ", RoleAndName(identity),
                       " was renewed within the last minute; try again later"));
    }
  }
  return Sign(identity, key, now, span - kClockSlack,
              {.by = "renewal by " + IdentityUri(identity), .parent = serial});
}

absl::StatusOr<int> Authority::Revoke(std::string_view what,
                                      const std::string& why, absl::Time now,
                                      const std::string& by) {
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this, now));
  const std::string meant = Text(what);
  std::vector<const Entry*> found = log_.Of(meant);
  if (found.empty()) found = log_.Descendants(meant);
  if (const Entry* own = log_.Find(meant)) found.push_back(own);
  std::string lines;
  int count = 0;
  for (const Entry* entry : found) {
    if (!entry->revoked.empty()) continue;
    json line = Line("revoked", now, by);
    line["serial"] = entry->serial;
    line["why"] = why.empty() ? "no reason given" : why;
    lines += line.dump() + "\n";
    ++count;
  }
  if (count == 0) {
    return absl::NotFoundError(absl::StrCat(
        "no certificate that is not revoked already has the serial or is of "
        "ROLE/NAME '",
        meant, "'; `regatta certs list` shows them"));
  }
  RETURN_IF_ERROR(log_.Append(lines));
  // A crash before it is done is mended by whoever comes next.
  RETURN_IF_ERROR(MendRevocationList(now));
  return count;
}

absl::Status Authority::MendRevocationList(absl::Time now) {
  const std::string path = dir_ + "/crl.pem";
  const std::string stamp = FileStamp(path);
  if (listed_ == log_.revocations() && stamp == list_stamp_) {
    return absl::OkStatus();
  }
  bool whole = false;
  // More than any list before had, whatever became of the file.
  int64_t number = 1 + log_.revocations();
  if (auto pem = ReadSmallFile(path, kMaxListBytes); pem.ok()) {
    const auto list = RevocationList::FromPem(*pem);
    if (list.ok() && list->SignedBy(certificate_)) {
      whole = true;
      for (const Entry& entry : log_.entries()) {
        // An expired one counts for nothing without the list.
        if (entry.revoked.empty() || entry.not_after <= now) continue;
        whole = whole && list->Revokes(entry.serial);
      }
      number = std::max(number, list->Number() + 1);
    }
  }
  if (!whole) RETURN_IF_ERROR(WriteRevocationList(now, number));
  listed_ = log_.revocations();
  list_stamp_ = FileStamp(path);
  return absl::OkStatus();
}

absl::Status Authority::WriteRevocationList(absl::Time now, int64_t number) {
  std::vector<std::string> serials;
  for (const Entry& entry : log_.entries()) {
    if (!entry.revoked.empty() && entry.not_after > now) {
      serials.push_back(entry.serial);
    }
  }
  return ReplaceFile(
      dir_ + "/crl.pem",
      RevocationList::Make(certificate_, key_, serials, number, now).Pem(),
      0644);
}

absl::StatusOr<std::vector<Authority::Entry>> Authority::List(absl::Time now) {
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this, now));
  std::vector<Entry> list;
  for (const Entry& entry : log_.entries()) {
    if (entry.not_after > now) list.push_back(entry);
  }
  return list;
}

absl::StatusOr<std::map<std::string, std::string>> Authority::RevokedAgents(
    absl::Time now) {
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this, now));
  return log_.RevokedNames("agent/");
}

absl::StatusOr<std::string> Authority::Revocations(absl::Time now) {
  ASSIGN_OR_RETURN(const auto locked, Locked::Enter(*this, now));
  return ReadSmallFile(dir_ + "/crl.pem", kMaxListBytes);
}

}  // namespace regatta
