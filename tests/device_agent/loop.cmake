regatta_test(device_agent_loop_test
  loop/agent_loop_test.cc
  loop/spool_test.cc
  LIBS regatta_agent_loop)
