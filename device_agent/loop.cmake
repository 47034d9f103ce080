# The agent's loop, spool and probes; the tracker client; the daemon.
find_package(ZLIB REQUIRED)
add_library(regatta_agent_loop STATIC
  loop/admission.cc loop/agent_loop.cc
  loop/agent_runtime.cc loop/spool.cc loop/spool_record.cc loop/spool_storage.cc)
target_link_libraries(regatta_agent_loop PUBLIC
  regatta_base regatta_proto PRIVATE ZLIB::ZLIB)

add_library(regatta_agent_client STATIC tracker_client.cc)
target_link_libraries(regatta_agent_client PUBLIC
  regatta_agent_loop regatta_proto_grpc)
