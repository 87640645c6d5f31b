"""Files on local disks and object stores (obstore). The room knows where the files of a Lance table lie, and not
what is in them."""
