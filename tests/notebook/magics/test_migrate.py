"""%jax_migrate lists the uses of host_callback in a file, and rewrites its imports."""


def test_file_is_listed_and_rewritten(kernel, tmp_path):
    path = tmp_path / "my model.py"
    path.write_text("from jax.experimental import host_callback as hcb\nhcb.barrier_wait()\n")
    ran = kernel.run(f"%jax_migrate '{path}'")
    assert "2 uses of host_callback" in ran.text
    assert "write: from jupyter_jaxcb import host_callback as hcb" in ran.text
    assert "jax.experimental" in path.read_text()
    assert f"{path}: rewritten\n" in kernel.run(f"%jax_migrate --write '{path}'").text
    assert path.read_text().startswith("from jupyter_jaxcb import host_callback as hcb\n")


def test_missing_file_is_reported(kernel, tmp_path):
    ran = kernel.run(f"%jax_migrate {tmp_path}/gone.py")
    assert "cannot read" in ran.text + str(ran.error)
    ran = kernel.run("%jax_migrate")
    assert "%jax_migrate?" in ran.text + str(ran.error)


def test_several_files_and_folders_are_accepted(kernel, tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("from jax.experimental import host_callback as hcb\n")
    ran = kernel.run(f"%jax_migrate {tmp_path}/a.py {tmp_path} {tmp_path}/gone.py")
    assert f"{tmp_path}: 2 files, 2 with uses of host_callback" in ran.text
    assert ran.text.count("a.py: 1 use of") == 2
    assert "cannot read" in ran.text
