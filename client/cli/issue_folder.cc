#include "client/cli/issue_folder.h"

#include <vector>

#include "base/certs/issue.h"
#include "base/certs/revocation_list.h"
#include "base/certs/tls_folder.h"
#include "base/certs/trust.h"
#include "base/replace_file.h"
#include "base/status_macros.h"

namespace regatta::cli {

namespace {

// What the folder trusts beside this authority: others of the lab, while one
// takes over from another, and their lists. What cannot be read is replaced.
struct Others {
  std::vector<Certificate> authorities;
  std::vector<RevocationList> lists;
};
Others OthersIn(const std::string& dir, const Authority& authority) {
  Others others;
  const auto ca_pem = ReadSmallFile(dir + "/ca.pem");
  if (!ca_pem.ok()) return others;
  const auto there = Certificate::AllFromPem(*ca_pem);
  if (!there.ok()) return others;
  for (const Certificate& other : *there) {
    if (other.Lab() == authority.lab() &&
        other.Fingerprint() != authority.certificate().Fingerprint()) {
      others.authorities.push_back(other);
    }
  }
  const auto crl_pem = ReadSmallFile(dir + "/crl.pem", 64 << 20);
  if (!crl_pem.ok()) return others;
  auto lists = RevocationList::AllFromPem(*crl_pem);
  if (lists.ok()) others.lists = *std::move(lists);
  return others;
}

}  // namespace

absl::Status IssueFolder(Authority* authority, const std::string& dir,
                         const Identity& identity, absl::Time now,
                         absl::Duration life, const std::string& by) {
  RETURN_IF_ERROR(MakeTlsFolder(dir));
  const PrivateKey key = PrivateKey::Generate();
  ASSIGN_OR_RETURN(
      const Authority::Issued issued,
      authority->Issue(identity, PublicKey::Of(key), now, life, by));
  ASSIGN_OR_RETURN(const std::string revoked, authority->Revocations(now));
  ASSIGN_OR_RETURN(const RevocationList list, RevocationList::FromPem(revoked));
  Others others = OthersIn(dir, *authority);
  others.authorities.insert(others.authorities.begin(),
                            authority->certificate());
  others.lists.push_back(list);
  std::string ca_pem;
  for (const Certificate& each : others.authorities) ca_pem += each.Pem();
  RETURN_IF_ERROR(WriteAuthorities(dir, ca_pem));
  const Trust trust = Trust::Make(others.authorities, others.lists);
  RETURN_IF_ERROR(WriteRevocations(dir, trust.RevokedPem()));
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
