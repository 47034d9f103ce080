#include "client/cli/issue_folder.h"

#include "base/certs/issue.h"
#include "base/certs/tls_folder.h"
#include "base/status_macros.h"

namespace regatta::cli {

absl::Status IssueFolder(Authority* authority, const std::string& dir,
                         const Identity& identity, absl::Time now,
                         absl::Duration life, const std::string& by) {
  RETURN_IF_ERROR(MakeTlsFolder(dir));
  const PrivateKey key = PrivateKey::Generate();
  ASSIGN_OR_RETURN(
      const Authority::Issued issued,
      authority->Issue(identity, PublicKey::Of(key), now, life, by));
  ASSIGN_OR_RETURN(const std::string revoked, authority->Revocations());
  RETURN_IF_ERROR(WriteAuthorities(dir, authority->certificate().Pem()));
  RETURN_IF_ERROR(WriteRevocations(dir, revoked));
  return WritePair(dir, key, issued.chain_pem);
}

absl::Status EnsureFolder(Authority* authority, const std::string& dir,
                          const Identity& identity, absl::Time now,
                          const std::string& by) {
  const auto there = ReadTlsFolder(dir, now);
  if (there.ok() && there->identity == identity &&
      there->certificate.NotAfter() > now + kCertificateLife / 2) {
    return absl::OkStatus();
  }
  return IssueFolder(authority, dir, identity, now, kCertificateLife, by);
}

}  // namespace regatta::cli
