#include "base/certs/tls_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/certs/revocation_list.h"
#include "base/replace_file.h"
#include "base/status_macros.h"
#include "base/sync_path.h"
#include "base/system_error.h"

namespace regatta {
namespace {

constexpr char kHowToGet[] =
    "; `regatta certs issue` makes a folder, `regatta certs join` fills one "
    "with a token (docs/security.md)";

constexpr char kHowToJoin[] =
    "; `regatta certs token` makes a token, with which the agent (--join) or "
    "`regatta certs join` gets the next one; `regatta certs issue` makes one "
    "by hand (docs/security.md)";
constexpr char kSetClock[] = "; if this machine's clock is wrong, set it";

// What to do about a certificate that does not count.
std::string RemedyOf(const Certificate& certificate, const Trust& trust,
                     absl::Time now) {
  if (now < certificate.NotBefore()) {
    return "; this machine's clock is behind, or the certificate is for later: "
           "set the clock (timedatectl set-ntp true)";
  }
  if (now > certificate.NotAfter()) return absl::StrCat(kSetClock, kHowToJoin);
  return trust.Revokes(certificate) ? kHowToJoin : kHowToGet;
}

absl::Status Wrong(const std::string& path, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", what));
}

absl::StatusOr<std::string> ReadPart(const std::string& path) {
  auto bytes = ReadSmallFile(path);
  if (bytes.ok()) return bytes;
  return absl::FailedPreconditionError(
      absl::StrCat(bytes.status().message(),
                   absl::IsNotFound(bytes.status()) ? kHowToGet : ""));
}

absl::StatusOr<PrivateKey> ReadKey(const std::string& path) {
  auto key = ReadPrivateKey(path);
  if (!absl::IsNotFound(key.status())) return key;
  return absl::FailedPreconditionError(
      absl::StrCat(key.status().message(), kHowToGet));
}

// The key of the certificate: key.pem, or the one that a crash left beside it.
absl::StatusOr<PrivateKey> FindKey(const std::string& dir,
                                   const Certificate& certificate) {
  const std::string path = dir + "/key.pem";
  auto key = ReadKey(path);
  if (key.ok() && certificate.BelongsTo(*key)) return key;
  auto waiting = ReadKey(path + ".new");
  if (waiting.ok() && certificate.BelongsTo(*waiting)) return waiting;
  RETURN_IF_ERROR(key.status());
  return Wrong(path, "is not the key of cert.pem beside it");
}

absl::StatusOr<std::vector<RevocationList>> ReadRevocations(
    const std::string& path) {
  // As many revoked certificates as a lab will ever see.
  const auto pem = ReadSmallFile(path, 64 << 20);
  if (absl::IsNotFound(pem.status())) return std::vector<RevocationList>();
  RETURN_IF_ERROR(pem.status());
  auto lists = RevocationList::AllFromPem(*pem);
  if (!lists.ok()) return Wrong(path, lists.status().message());
  return lists;
}

}  // namespace

absl::StatusOr<TlsMaterial> ReadTlsFolder(const std::string& dir,
                                          absl::Time now) {
  const std::string ca_path = dir + "/ca.pem";
  const std::string cert_path = dir + "/cert.pem";
  const std::string crl_path = dir + "/crl.pem";
  ASSIGN_OR_RETURN(const std::string ca_pem, ReadPart(ca_path));
  auto authorities = Certificate::AllFromPem(ca_pem);
  if (!authorities.ok()) return Wrong(ca_path, authorities.status().message());
  ASSIGN_OR_RETURN(const std::string chain_pem, ReadPart(cert_path));
  auto certificate = Certificate::FromPem(chain_pem);
  if (!certificate.ok())
    return Wrong(cert_path, certificate.status().message());
  ASSIGN_OR_RETURN(const PrivateKey key, FindKey(dir, *certificate));
  ASSIGN_OR_RETURN(const std::vector<RevocationList> revoked,
                   ReadRevocations(crl_path));
  Trust trust = Trust::Make(*std::move(authorities), revoked);
  auto identity = trust.Check(*certificate, now);
  if (!identity.ok()) {
    return Wrong(cert_path, absl::StrCat(identity.status().message(),
                                         RemedyOf(*certificate, trust, now)));
  }
  return TlsMaterial{key,    *certificate, chain_pem,
                     ca_pem, *identity,    std::move(trust)};
}

bool HasNoIdentity(const std::string& dir) {
  std::error_code ignored;
  return !std::filesystem::exists(dir + "/cert.pem", ignored) &&
         !std::filesystem::exists(dir + "/key.pem", ignored);
}

std::string WhySpent(const std::string& dir, absl::Time now) {
  const auto chain_pem = ReadSmallFile(dir + "/cert.pem");
  if (!chain_pem.ok()) return "";
  const auto certificate = Certificate::FromPem(*chain_pem);
  if (!certificate.ok()) return "";
  if (now > certificate->NotAfter()) {
    return absl::StrCat(
        "certificate ", certificate->Serial(), " ran out at ",
        absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", certificate->NotAfter(),
                         absl::UTCTimeZone()));
  }
  const auto ca_pem = ReadSmallFile(dir + "/ca.pem");
  const auto lists = ReadRevocations(dir + "/crl.pem");
  if (!ca_pem.ok() || !lists.ok()) return "";
  auto authorities = Certificate::AllFromPem(*ca_pem);
  if (!authorities.ok() ||
      !Trust::Make(*std::move(authorities), *lists).Revokes(*certificate)) {
    return "";
  }
  return absl::StrCat("certificate ", certificate->Serial(), " is revoked");
}

absl::Status SetPairAside(const std::string& dir) {
  for (const auto& [name, mode] :
       {std::pair<const char*, mode_t>{"/key.pem", 0600},
        std::pair<const char*, mode_t>{"/cert.pem", 0644}}) {
    const std::string path = dir + name;
    const auto bytes = ReadSmallFile(path);
    if (absl::IsNotFound(bytes.status())) continue;
    RETURN_IF_ERROR(bytes.status());
    RETURN_IF_ERROR(ReplaceFile(path + ".old", *bytes, mode));
  }
  return absl::OkStatus();
}

absl::Status MakeTlsFolder(const std::string& dir) {
  std::error_code error;
  const std::filesystem::path path(dir);
  if (path.has_parent_path()) {
    std::filesystem::create_directories(path.parent_path(), error);
  }
  if (mkdir(dir.c_str(), 0700) == 0) return absl::OkStatus();
  const int failed = errno;
  struct stat folder = {};
  if (failed != EEXIST || stat(dir.c_str(), &folder) != 0 ||
      !S_ISDIR(folder.st_mode)) {
    return SystemError(dir, "make the folder", failed);
  }
  // They could put files of their own in the place of ours.
  if ((folder.st_mode & 022) != 0) {
    return Wrong(dir, absl::StrFormat("others may write into the folder (mode "
                                      "%04o); chmod go-w it",
                                      folder.st_mode & 07777));
  }
  return absl::OkStatus();
}

absl::Status WritePair(const std::string& dir, const PrivateKey& key,
                       const std::string& chain_pem) {
  const std::string key_path = dir + "/key.pem";
  RETURN_IF_ERROR(ReplaceFile(key_path + ".new", key.Pem(), 0600));
  RETURN_IF_ERROR(ReplaceFile(dir + "/cert.pem", chain_pem, 0644));
  if (std::rename((key_path + ".new").c_str(), key_path.c_str()) != 0) {
    return SystemError(key_path, "write", errno);
  }
  if (const int error = SyncFolderOf(key_path); error != 0) {
    return SystemError(key_path, "write", error);
  }
  return absl::OkStatus();
}

absl::Status WriteAuthorities(const std::string& dir, const std::string& pem) {
  return ReplaceFile(dir + "/ca.pem", pem, 0644);
}

absl::Status WriteRevocations(const std::string& dir, const std::string& pem) {
  return ReplaceFile(dir + "/crl.pem", pem, 0644);
}

}  // namespace regatta
